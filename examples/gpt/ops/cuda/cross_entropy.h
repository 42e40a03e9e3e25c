/// \file
/// Softmax and cross entropy of logits, and their gradient in place.
#pragma once

#include "examples/gpt/ops/cuda/scratch.h"

namespace gpt::cuda {

using ddp::TensorView;

struct CrossEntropy {
  TensorView losses, logits, targets;
  std::int64_t rows = 0, vocabulary = 0, padded_vocabulary = 0;
  float gradient_scale = 0;
  bool want_gradient = false;
};

/// Columns past the vocabulary become 0 with the gradient, so that later
/// products may run over the padded width.
void cross_entropy(const Context& context, const CrossEntropy& args);

}  // namespace gpt::cuda
