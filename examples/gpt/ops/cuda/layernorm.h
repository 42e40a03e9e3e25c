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

/// Rows may have up to 8192 elements of bf16 or 4096 of fp32; 1024 where
/// their width or memory does not allow accesses of 16 bytes. Beyond, both
/// throw InvalidArgument.
void layernorm_forward(const Context& context, const LayernormForward& args);
void layernorm_backward(Context& context, const LayernormBackward& args);

}  // namespace gpt::cuda
