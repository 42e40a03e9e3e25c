/// \file
/// Kernels: the inner loops of the CPU ops, one table per instruction set.
///
/// All work on fp32. A function does one piece of an operation on the calling
/// thread; ops.cpp cuts operations into pieces and gives them to threads. A
/// piece's result depends on its arguments alone, and how work is cut not on
/// the number of threads.
#pragma once

#include <cstdint>

namespace gpt {

/// One (batch, head) of a causal attention. Rows of q, k, v and their
/// gradients are `qkv_stride` elements apart, those of `out` and `dout`
/// `out_stride`.
struct AttentionHead {
  std::int64_t sequence = 0;
  std::int64_t head_size = 0;
  std::int64_t qkv_stride = 0;
  std::int64_t out_stride = 0;
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  float* out = nullptr;
  /// Logarithm of the sum of exponentials of every row of scores.
  float* log_sums = nullptr;
  const float* dout = nullptr;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
};

struct Kernels {
  const char* name;

  /// Rows of layernorm; with `b` the input is a + b, stored in `residual`.
  void (*layernorm)(float* residual, float* out, float* mean, float* rstd,
                    const float* a, const float* b, const float* weight,
                    const float* bias, std::int64_t rows, std::int64_t width);
  /// din += gradient; sums over these rows overwrite dweight and dbias.
  void (*layernorm_backward)(float* din, float* dweight, float* dbias,
                             const float* dout, const float* in,
                             const float* weight, const float* mean,
                             const float* rstd, std::int64_t rows,
                             std::int64_t width);
  /// Every row of x becomes `row`: what a product is then added to.
  void (*repeat_row)(float* x, const float* row, std::int64_t rows,
                     std::int64_t width);
  void (*gelu)(float* out, const float* in, std::int64_t count);
  /// dout *= gelu'(pre).
  void (*gelu_backward)(float* dout, const float* pre, std::int64_t count);
  void (*add)(float* out, const float* a, const float* b, std::int64_t count);
  /// sums[column] = sum of x[row][column] over these rows, in order.
  void (*column_sums)(float* sums, const float* x, std::int64_t rows,
                      std::int64_t width);
  /// Loss of one row; if `gradient` its logits become the gradient.
  float (*cross_entropy)(float* logits, std::int64_t target,
                         std::int64_t vocabulary, float scale, bool gradient);

  /// Floats of scratch that one head needs.
  std::int64_t (*attention_scratch)(std::int64_t sequence,
                                    std::int64_t head_size, bool backward);
  void (*attention)(const AttentionHead& head, float* scratch);
  void (*attention_backward)(const AttentionHead& head, float* scratch);
};

/// The fastest table that this machine can run.
const Kernels& kernels();

}  // namespace gpt
