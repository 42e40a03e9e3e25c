#include "examples/gpt/ops/cuda/linear.h"

#include "examples/gpt/ops/cuda/bias_gradient.h"
#include "examples/gpt/ops/cuda/elementwise.h"

namespace gpt::cuda {
namespace {

/// Products over a vocabulary that is a multiple of this need no padding:
/// 16 bytes of bf16, so that every row and the last tile are aligned.
constexpr std::int64_t kAlignedColumns = 8;

}  // namespace

Linear::Linear(Context& context, ddp::StreamView stream, ddp::DType dtype,
               const CudaOpsOptions& options)
    : context_(context),
      dtype_(dtype),
      fuse_gelu_(options.fuse_gelu),
      fuse_bias_gradient_(options.fuse_bias_gradient),
      matmul_(stream, options.tune_products) {}

void Linear::forward(TensorView out, TensorView in, TensorView weight,
                     TensorView bias, TensorView pre_gelu, std::int64_t rows,
                     std::int64_t columns_in, std::int64_t columns_out) {
  if (rows == 0) return;
  Product product{.m = columns_out,
                  .n = rows,
                  .k = columns_in,
                  .a = weight.data,
                  .b = in.data,
                  .d = out.data,
                  .lda = columns_out,
                  .ldb = columns_in,
                  .ldd = columns_out,
                  .dtype = dtype_,
                  .result_dtype = dtype_,
                  .bias = bias.data,
                  .aux = pre_gelu.data};
  if (pre_gelu.data && fuse_gelu_) {
    product.epilogue = Epilogue::kGeluAuxBias;
    if (matmul_.try_run(product)) return;
  }
  const TensorView sum = pre_gelu.data ? pre_gelu : out;
  product.d = sum.data;
  product.epilogue = Epilogue::kBias;
  if (!matmul_.try_run(product)) {
    product.epilogue = Epilogue::kNone;
    matmul_.run(product);
    add_bias(context_, sum, bias, rows, columns_out);
  }
  if (pre_gelu.data) gelu_forward(context_, out, pre_gelu);
}

void Linear::backward_weight(const GradientTarget& weight_grad,
                             const GradientTarget& bias_grad, TensorView dout,
                             TensorView in, std::int64_t rows,
                             std::int64_t columns_in,
                             std::int64_t columns_out) {
  Product product{.m = columns_out,
                  .n = columns_in,
                  .k = rows,
                  .transpose_b = true,
                  .a = dout.data,
                  .b = in.data,
                  .d = weight_grad.tensor.data,
                  .lda = columns_out,
                  .ldb = columns_in,
                  .ldd = columns_out,
                  .dtype = dtype_,
                  .result_dtype = weight_grad.tensor.dtype,
                  .accumulate = weight_grad.accumulate,
                  .bias = bias_grad.tensor.data};
  // The epilogue overwrites the bias's gradient, in the weight's type.
  const bool may_fuse = fuse_bias_gradient_ && !bias_grad.accumulate &&
                        bias_grad.tensor.dtype == weight_grad.tensor.dtype;
  if (may_fuse) {
    product.epilogue = Epilogue::kBiasGradient;
    if (matmul_.try_run(product)) return;
    product.epilogue = Epilogue::kNone;
  }
  matmul_.run(product);
  bias_gradient(context_, bias_grad, dout, rows, columns_out);
}

void Linear::backward_input(TensorView din, TensorView dout, TensorView weight,
                            TensorView pre_gelu, std::int64_t rows,
                            std::int64_t columns_in, std::int64_t columns_out) {
  if (rows == 0) return;
  Product product{.m = columns_in,
                  .n = rows,
                  .k = columns_out,
                  .transpose_a = true,
                  .a = weight.data,
                  .b = dout.data,
                  .d = din.data,
                  .lda = columns_out,
                  .ldb = columns_out,
                  .ldd = columns_in,
                  .dtype = dtype_,
                  .result_dtype = dtype_,
                  .aux = pre_gelu.data};
  if (pre_gelu.data && fuse_gelu_) {
    product.epilogue = Epilogue::kGeluBackward;
    if (matmul_.try_run(product)) return;
    product.epilogue = Epilogue::kNone;
  }
  matmul_.run(product);
  if (pre_gelu.data) gelu_backward(context_, din, pre_gelu);
}

/// A table whose rows are as many as the logits' columns, the last ones
/// zero, if the vocabulary is odd: an unaligned product takes twice as long,
/// the copy 40 us for 50257 rows of 768 at 4 TB/s.
TensorView Linear::padded_table(TensorView table, std::int64_t width,
                                std::int64_t vocabulary,
                                std::int64_t padded_vocabulary) {
  if (vocabulary % kAlignedColumns == 0) return table;
  TensorView padded{nullptr, padded_vocabulary * width, table.dtype,
                    table.device};
  padded.data = context_.scratch.get(padded.bytes());
  copy_padded(context_, padded, table.slice(0, vocabulary * width), width);
  return padded;
}

void Linear::head_forward(TensorView logits, TensorView in, TensorView table,
                          std::int64_t rows, std::int64_t width,
                          std::int64_t vocabulary,
                          std::int64_t padded_vocabulary) {
  if (rows == 0) return;
  const TensorView padded =
      padded_table(table, width, vocabulary, padded_vocabulary);
  matmul_.run({.m = padded.numel / width,
               .n = rows,
               .k = width,
               .transpose_a = true,
               .a = padded.data,
               .b = in.data,
               .d = logits.data,
               .lda = width,
               .ldb = width,
               .ldd = padded_vocabulary,
               .dtype = dtype_,
               .result_dtype = dtype_});
}

void Linear::head_backward(TensorView din, const GradientTarget& table_grad,
                           TensorView dlogits, TensorView in, TensorView table,
                           std::int64_t rows, std::int64_t width,
                           std::int64_t vocabulary,
                           std::int64_t padded_vocabulary) {
  const TensorView padded =
      padded_table(table, width, vocabulary, padded_vocabulary);
  // What lies past the vocabulary counts for nothing, but 0 * NaN would not.
  if (padded.data != table.data)
    zero_columns(context_, dlogits, rows, padded_vocabulary, vocabulary);
  if (rows > 0)
    matmul_.run({.m = width,
                 .n = rows,
                 .k = padded.numel / width,
                 .a = padded.data,
                 .b = dlogits.data,
                 .d = din.data,
                 .lda = width,
                 .ldb = padded_vocabulary,
                 .ldd = width,
                 .dtype = dtype_,
                 .result_dtype = dtype_});
  // The gradient has no padding: its aligned part, then up to seven rows.
  const std::int64_t aligned = vocabulary / kAlignedColumns * kAlignedColumns;
  for (const auto& [first, count] :
       {std::pair{std::int64_t{0}, aligned},
        std::pair{aligned, vocabulary - aligned}}) {
    if (count == 0) continue;
    matmul_.run({.m = width,
                 .n = count,
                 .k = rows,
                 .transpose_b = true,
                 .a = in.data,
                 .b = dlogits.slice(first, 0).data,
                 .d = table_grad.tensor.slice(first * width, 0).data,
                 .lda = width,
                 .ldb = padded_vocabulary,
                 .ldd = width,
                 .dtype = dtype_,
                 .result_dtype = table_grad.tensor.dtype,
                 .accumulate = table_grad.accumulate});
  }
}

}  // namespace gpt::cuda
