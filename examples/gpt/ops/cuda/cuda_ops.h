/// \file
/// Choices of the CUDA Ops, for programs that compare them.
#pragma once

#include <string_view>

#include "examples/gpt/ops/ops.h"

namespace gpt {

enum class AttentionKind {
  /// cuDNN where the build and the machine have it and it takes the shape,
  /// else our own.
  kBest,
  /// Our own: tensor cores for bf16 with heads of 32, 64 and 128.
  kFlash,
  /// Plain fp32 arithmetic, slow: what the others are checked against.
  kSimple,
};

struct CudaOpsOptions {
  AttentionKind attention = AttentionKind::kBest;
  /// Ask cuDNN for the attention backward that repeats bit for bit. It needs
  /// a workspace of batch * heads * sequence^2 values and is slower. Our own
  /// attention always repeats.
  bool deterministic_attention = false;
  /// Time several algorithms for each shape of product at its first use and
  /// keep the fastest. Saves some percent; runs then may choose differently
  /// and so differ in the last bits.
  bool tune_products = false;
  /// Let products apply GELU and its gradient as they write their result,
  /// where cuBLASLt can; else a kernel of its own does.
  bool fuse_gelu = true;
  /// The same for the sum of a bias's gradient.
  bool fuse_bias_gradient = false;

  /// Defaults, changed by the environment: GPT_ATTENTION = best, flash or
  /// simple; GPT_DETERMINISTIC, GPT_TUNE, GPT_FUSE_GELU and
  /// GPT_FUSE_BIAS_GRADIENT = 0 or 1. Throws InvalidArgument for others.
  static CudaOpsOptions from_environment();
};

/// Ops on the GPU of `stream`. The other make_cuda_ops() takes its options
/// from the environment. One thread at a time; all work goes to `stream`,
/// which must outlive the Ops. Memory that the operations need between their
/// kernels is allocated at the first use of a shape.
std::unique_ptr<Ops> make_cuda_ops(ddp::DType dtype, ddp::StreamView stream,
                                   const CudaOpsOptions& options);

/// What attention runs on: "cudnn", "flash" or "simple"; empty if `ops` was
/// not made here. Shapes that one refuses go to the next.
std::string_view attention_name(const Ops& ops);

}  // namespace gpt
