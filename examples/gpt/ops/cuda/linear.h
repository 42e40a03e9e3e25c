/// \file
/// Linear layers and the language-model head, as column-major products.
///
/// Row-major [r, c] is column-major [c, r], so with W as [in, out]:
///
///     forward          out^T  [out, rows] = W^T   [out, in]   * in^T  [in,
///     rows] input gradient   din^T  [in, rows]  = W     [in, out]   *
///     dout^T[out, rows] weight gradient  dW^T   [out, in]   = dout^T[out,
///     rows] * in    [rows, in]
///
/// where W^T, in^T, dout^T are the memory as it lies and W, in are
/// transposed by the product.
#pragma once

#include "examples/gpt/ops/cuda/cuda_ops.h"
#include "examples/gpt/ops/cuda/matmul.h"

namespace gpt::cuda {

class Linear {
 public:
  Linear(Context& context, ddp::StreamView stream, ddp::DType dtype,
         const CudaOpsOptions& options);

  // As the members of Ops of these names.
  void forward(TensorView out, TensorView in, TensorView weight,
               TensorView bias, TensorView pre_gelu, std::int64_t rows,
               std::int64_t columns_in, std::int64_t columns_out);
  void backward_weight(const GradientTarget& weight_grad,
                       const GradientTarget& bias_grad, TensorView dout,
                       TensorView in, std::int64_t rows,
                       std::int64_t columns_in, std::int64_t columns_out);
  void backward_input(TensorView din, TensorView dout, TensorView weight,
                      TensorView pre_gelu, std::int64_t rows,
                      std::int64_t columns_in, std::int64_t columns_out);
  void head_forward(TensorView logits, TensorView in, TensorView table,
                    std::int64_t rows, std::int64_t width,
                    std::int64_t vocabulary, std::int64_t padded_vocabulary);
  void head_backward(TensorView din, const GradientTarget& table_grad,
                     TensorView dlogits, TensorView in, TensorView table,
                     std::int64_t rows, std::int64_t width,
                     std::int64_t vocabulary, std::int64_t padded_vocabulary);

 private:
  TensorView padded_table(TensorView table, std::int64_t width,
                          std::int64_t vocabulary,
                          std::int64_t padded_vocabulary);

  Context& context_;
  ddp::DType dtype_;
  bool fuse_gelu_;
  bool fuse_bias_gradient_;
  Matmul matmul_;
};

}  // namespace gpt::cuda
