/// \file
/// The gradient of a bias: the sum of dout's rows, in fixed order.
#pragma once

#include "examples/gpt/ops/cuda/scratch.h"
#include "libddp/reduce/parameter.h"

namespace gpt::cuda {

/// bias_grad[column] (+)= sum over rows of dout[row, column], in fp32.
void bias_gradient(Context& context, const ddp::GradientTarget& bias_grad,
                   ddp::TensorView dout, std::int64_t rows,
                   std::int64_t columns);

}  // namespace gpt::cuda
