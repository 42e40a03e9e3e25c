/// \file
/// CpuOps: the operations of ops.h on the CPU.
#pragma once

#include "examples/gpt/ops/cpu/staging.h"
#include "examples/gpt/ops/ops.h"

namespace gpt {

/// Every operation is complete when its call returns. Tensors may be fp32 or
/// bf16; arithmetic is fp32, and a bf16 result is rounded once, at the end of
/// the operation. Runs repeat bit for bit; another number of threads changes at
/// most the rounding inside OpenBLAS's products. Throws
/// InvalidArgument for tokens outside the vocabulary. One thread at a time.
class CpuOps final : public Ops {
 public:
  ddp::StreamView stream() const override { return ddp::StreamView::cpu(); }
  /// Logarithms of the sums of the softmax: one float a head and token.
  std::size_t attention_saved_bytes(const AttentionShape& shape) const override;

  void embedding_forward(TensorView out, TensorView tokens,
                         TensorView token_table, TensorView position_table,
                         std::int64_t rows, std::int64_t sequence,
                         std::int64_t width) override;
  void embedding_backward(GradientTarget token_table,
                          GradientTarget position_table, TensorView dout,
                          TensorView tokens, std::int64_t rows,
                          std::int64_t sequence, std::int64_t width,
                          std::int64_t vocabulary) override;
  void layernorm_forward(TensorView out, TensorView mean, TensorView rstd,
                         TensorView in, TensorView weight, TensorView bias,
                         std::int64_t rows, std::int64_t width) override;
  void residual_layernorm_forward(TensorView residual, TensorView out,
                                  TensorView mean, TensorView rstd,
                                  TensorView a, TensorView b, TensorView weight,
                                  TensorView bias, std::int64_t rows,
                                  std::int64_t width) override;
  void add(TensorView out, TensorView a, TensorView b) override;
  void layernorm_backward(TensorView din, GradientTarget weight_grad,
                          GradientTarget bias_grad, TensorView dout,
                          TensorView in, TensorView weight, TensorView mean,
                          TensorView rstd, std::int64_t rows,
                          std::int64_t width) override;
  void linear_forward(TensorView out, TensorView in, TensorView weight,
                      TensorView bias, TensorView pre_gelu, std::int64_t rows,
                      std::int64_t columns_in,
                      std::int64_t columns_out) override;
  void linear_backward_weight(GradientTarget weight_grad,
                              GradientTarget bias_grad, TensorView dout,
                              TensorView in, std::int64_t rows,
                              std::int64_t columns_in,
                              std::int64_t columns_out) override;
  void linear_backward_input(TensorView din, TensorView dout, TensorView weight,
                             TensorView pre_gelu, std::int64_t rows,
                             std::int64_t columns_in,
                             std::int64_t columns_out) override;
  void attention_forward(TensorView out, TensorView saved, TensorView qkv,
                         const AttentionShape& shape) override;
  void attention_backward(TensorView dqkv, TensorView dout, TensorView out,
                          TensorView saved, TensorView qkv,
                          const AttentionShape& shape) override;
  void head_forward(TensorView logits, TensorView in, TensorView table,
                    std::int64_t rows, std::int64_t width,
                    std::int64_t vocabulary,
                    std::int64_t padded_vocabulary) override;
  void head_backward(TensorView din, GradientTarget table_grad,
                     TensorView dlogits, TensorView in, TensorView table,
                     std::int64_t rows, std::int64_t width,
                     std::int64_t vocabulary,
                     std::int64_t padded_vocabulary) override;
  void cross_entropy(TensorView losses, TensorView logits, TensorView targets,
                     std::int64_t rows, std::int64_t vocabulary,
                     std::int64_t padded_vocabulary, float gradient_scale,
                     bool want_gradient) override;
  void mean_loss(float* mean, TensorView losses, double count,
                 bool accumulate) override;

 private:
  ScratchPool pool_;
};

}  // namespace gpt
