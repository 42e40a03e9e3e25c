/// \file
/// One optimizer update over all runs of an UpdateTable, in one pass.
///
/// Each element's gradient is the fp32 sum of its sources times
/// control->gradient_scale. Weights are read from the master copy where there
/// is one, and the new value is rounded once (nearest even) into every
/// destination. Nothing is read or written when control->apply is 0.
/// `groups` holds host values, one per UpdateRun::group; any number of groups.
/// `clocks` may be empty when no run has a clock.
#pragma once

#include <span>

#include "kernels/step_vote.h"
#include "kernels/update_table.h"

namespace ddp {

/// Adam (Kingma & Ba 2015, arXiv:1412.6980, algorithm 1); with `decoupled`
/// AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101, algorithm 2), as
/// torch.optim.Adam and torch.optim.AdamW compute them.
struct AdamStep {
  float lr = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float eps = 1e-8f;
  float weight_decay = 0;
  bool decoupled = true;
};

/// Updates weight, moment1 and moment2 of every run.
void adam(const UpdateTable& table, std::span<const AdamStep> groups,
          const StepControl* control, const ParameterClocks& clocks,
          StreamView stream);

/// Stochastic gradient descent as torch.optim.SGD computes it.
struct SgdStep {
  float lr = 1e-3f;
  float momentum = 0;
  float dampening = 0;
  float weight_decay = 0;
  bool nesterov = false;
};

/// Updates weight and, where a run has it, moment1 (the momentum buffer; the
/// first update sets it to the gradient, as torch does).
void sgd(const UpdateTable& table, std::span<const SgdStep> groups,
         const StepControl* control, const ParameterClocks& clocks,
         StreamView stream);

}  // namespace ddp
