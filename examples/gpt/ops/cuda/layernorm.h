/// \file
/// Layer normalisation (Ba, Kiros & Hinton 2016), forward and backward.
#pragma once

#include "examples/gpt/ops/cuda/scratch.h"
#include "libddp/reduce/parameter.h"

namespace gpt::cuda {

using ddp::TensorView;

/// Tensors of a forward pass; see Ops for shapes. `residual` without data:
/// the input is `a`; with data: residual = a + b is written and is the input.
struct LayernormForward {
  TensorView out, mean, rstd, residual, a, b, weight, bias;
  std::int64_t rows = 0, width = 0;
};

/// Tensors of a backward pass; din is added to.
struct LayernormBackward {
  TensorView din, dout, in, weight, mean, rstd;
  ddp::GradientTarget weight_grad, bias_grad;
  std::int64_t rows = 0, width = 0;
};

/// Widest row: that of 16-byte accesses in fp32. Odd widths and unaligned
/// memory allow kMaxNarrowWidth. Beyond, both throw InvalidArgument.
inline constexpr std::int64_t kMaxWidth = 4096;
inline constexpr std::int64_t kMaxNarrowWidth = 1024;

void layernorm_forward(const Context& context, const LayernormForward& args);
void layernorm_backward(Context& context, const LayernormBackward& args);

}  // namespace gpt::cuda
