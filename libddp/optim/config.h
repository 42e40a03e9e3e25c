/// \file
/// Which optimizer updates which parameters, with which hyper-parameters.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace ddp {

/// Adam with decoupled weight decay (arXiv:1711.05101).
struct AdamW {
  float lr = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  /// Added to the root of the second moment; larger damps rare gradients.
  float eps = 1e-8f;
  float weight_decay = 1e-2f;
};

/// Adam (arXiv:1412.6980); weight decay is added to the gradient.
struct Adam {
  float lr = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float eps = 1e-8f;
  float weight_decay = 0;
};

/// Stochastic gradient descent, with momentum if it is not 0.
struct Sgd {
  float lr = 1e-3f;
  float momentum = 0;
  float dampening = 0;
  float weight_decay = 0;
  bool nesterov = false;
};

using OptimizerConfig = std::variant<AdamW, Adam, Sgd>;

/// Hyper-parameters of one group of parameters. A group may be empty. All
/// groups of one DataParallel hold the same kind of optimizer.
struct ParameterGroup {
  /// Names of the parameters; those in no group follow the default optimizer.
  std::vector<std::string> parameters;
  OptimizerConfig optimizer;
};

}  // namespace ddp
