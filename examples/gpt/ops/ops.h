/// \file
/// Ops: the layers of GPT-2 as operations on memory, forward and backward.
///
/// One interface, a CPU and a CUDA twin. Activations and weights have the
/// dtype that the Ops was made for (fp32 or bf16), gradients of weights the
/// dtype of their GradientTarget (fp32, or bf16), statistics and losses are
/// fp32, tokens int32. All tensors are contiguous and row-major on the Ops's
/// device; `rows` is batch * sequence. A function enqueues on the Ops's stream
/// and returns; nothing waits for the device.
///
/// Gradients of weights: GradientTarget::accumulate false overwrites.
/// Gradients of activations are overwritten unless the comment says added.
#pragma once

#include <cstdint>
#include <memory>

#include "libddp/reduce/parameter.h"

namespace gpt {

using ddp::GradientTarget;
using ddp::TensorView;

/// Shape of one attention: heads * head_size == width.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t head_size = 0;
};

class Ops {
 public:
  virtual ~Ops() = default;

  virtual ddp::StreamView stream() const = 0;
  /// Bytes that attention_forward() leaves for attention_backward().
  virtual std::size_t attention_saved_bytes(const AttentionShape&) const = 0;

  /// out[row] = token_table[tokens[row]] + position_table[row % sequence].
  virtual void embedding_forward(TensorView out, TensorView tokens,
                                 TensorView token_table,
                                 TensorView position_table, std::int64_t rows,
                                 std::int64_t sequence, std::int64_t width) = 0;
  /// Adds to the token table's gradient (fixed order, so runs repeat) unless
  /// its target says overwrite; the same for positions.
  virtual void embedding_backward(GradientTarget token_table,
                                  GradientTarget position_table,
                                  TensorView dout, TensorView tokens,
                                  std::int64_t rows, std::int64_t sequence,
                                  std::int64_t width,
                                  std::int64_t vocabulary) = 0;

  /// LayerNorm over the last dimension, eps 1e-5. `mean` and `rstd` are
  /// fp32[rows], for backward.
  virtual void layernorm_forward(TensorView out, TensorView mean,
                                 TensorView rstd, TensorView in,
                                 TensorView weight, TensorView bias,
                                 std::int64_t rows, std::int64_t width) = 0;
  /// residual = a + b, then out = layernorm(residual): one pass.
  virtual void residual_layernorm_forward(TensorView residual, TensorView out,
                                          TensorView mean, TensorView rstd,
                                          TensorView a, TensorView b,
                                          TensorView weight, TensorView bias,
                                          std::int64_t rows,
                                          std::int64_t width) = 0;
  /// out = a + b.
  virtual void add(TensorView out, TensorView a, TensorView b) = 0;
  /// din += the gradient through the layer (din holds the residual stream's).
  virtual void layernorm_backward(TensorView din, GradientTarget weight_grad,
                                  GradientTarget bias_grad, TensorView dout,
                                  TensorView in, TensorView weight,
                                  TensorView mean, TensorView rstd,
                                  std::int64_t rows, std::int64_t width) = 0;

  /// out[rows, columns_out] = in[rows, columns_in] * weight + bias, where
  /// weight is [columns_in, columns_out] (GPT-2's Conv1D layout). If
  /// `pre_gelu` has data, it receives that result and out = gelu(pre_gelu)
  /// (tanh approximation, Hendrycks & Gimpel 2016).
  virtual void linear_forward(TensorView out, TensorView in, TensorView weight,
                              TensorView bias, TensorView pre_gelu,
                              std::int64_t rows, std::int64_t columns_in,
                              std::int64_t columns_out) = 0;
  /// Gradients of the weight and bias of `out = in * weight + bias`.
  virtual void linear_backward_weight(GradientTarget weight_grad,
                                      GradientTarget bias_grad, TensorView dout,
                                      TensorView in, std::int64_t rows,
                                      std::int64_t columns_in,
                                      std::int64_t columns_out) = 0;
  /// din = dout * weight^T, times gelu'(pre_gelu) where `pre_gelu` (the
  /// values before the activation that produced `in`) has data.
  virtual void linear_backward_input(TensorView din, TensorView dout,
                                     TensorView weight, TensorView pre_gelu,
                                     std::int64_t rows, std::int64_t columns_in,
                                     std::int64_t columns_out) = 0;

  /// Causal self-attention. qkv is [batch, sequence, 3, heads, head_size],
  /// out [batch, sequence, heads, head_size]; `saved` holds
  /// attention_saved_bytes().
  virtual void attention_forward(TensorView out, TensorView saved,
                                 TensorView qkv,
                                 const AttentionShape& shape) = 0;
  virtual void attention_backward(TensorView dqkv, TensorView dout,
                                  TensorView out, TensorView saved,
                                  TensorView qkv,
                                  const AttentionShape& shape) = 0;

  /// logits[rows, padded_vocabulary] = in[rows, width] * table^T; table is the
  /// token table [vocabulary, width] (tied). Columns past `vocabulary` are
  /// never read.
  virtual void head_forward(TensorView logits, TensorView in, TensorView table,
                            std::int64_t rows, std::int64_t width,
                            std::int64_t vocabulary,
                            std::int64_t padded_vocabulary) = 0;
  /// din = dlogits * table; table gradient (+)= dlogits^T * in.
  virtual void head_backward(TensorView din, GradientTarget table_grad,
                             TensorView dlogits, TensorView in,
                             TensorView table, std::int64_t rows,
                             std::int64_t width, std::int64_t vocabulary,
                             std::int64_t padded_vocabulary) = 0;
  /// losses[row] (fp32) = cross entropy of logits[row] and targets[row];
  /// if `want_gradient`, logits become (softmax - onehot) * gradient_scale in
  /// place. Targets < 0 are ignored: loss 0, gradient 0.
  virtual void cross_entropy(TensorView losses, TensorView logits,
                             TensorView targets, std::int64_t rows,
                             std::int64_t vocabulary,
                             std::int64_t padded_vocabulary,
                             float gradient_scale, bool want_gradient) = 0;
  /// *mean (a float on the device) = sum of losses / count, in fixed order;
  /// added to *mean if `accumulate`.
  virtual void mean_loss(float* mean, TensorView losses, double count,
                         bool accumulate) = 0;
};

/// Ops on the CPU: BLAS products, threads from OMP_NUM_THREADS.
std::unique_ptr<Ops> make_cpu_ops(ddp::DType dtype);
/// Ops on a GPU. Throws ddp::Unavailable in a build without CUDA.
std::unique_ptr<Ops> make_cuda_ops(ddp::DType dtype, ddp::StreamView stream);

}  // namespace gpt
