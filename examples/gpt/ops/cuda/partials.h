/// \file
/// The second half of a column sum: rows of partial sums become gradients.
#pragma once

#include "examples/gpt/ops/cuda/scratch.h"
#include "libddp/reduce/parameter.h"

namespace gpt::cuda {

/// For t in [0, targets): target t's column c gets the sum over p of
/// partials[(p * targets + t) * width + c], p ascending within a fixed tree.
/// Targets are one or two tensors of `width` elements, fp32 or bf16.
void reduce_partials(const Context& context, const ddp::GradientTarget& first,
                     const ddp::GradientTarget* second, const float* partials,
                     int count, std::int64_t width);

}  // namespace gpt::cuda
