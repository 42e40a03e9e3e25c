// Ops on the CPU. Each operation stages its tensors as fp32, cuts the work
// into pieces whose number does not depend on the threads, and calls kernels.
#include <algorithm>
#include <cstring>

#include "examples/gpt/ops/cpu/cpu_ops.h"
#include "examples/gpt/ops/cpu/gemm.h"
#include "examples/gpt/ops/cpu/kernels.h"
#include "examples/gpt/ops/cpu/threads.h"
#include "examples/gpt/ops/tokens.h"

namespace gpt {

using std::int64_t;

namespace {

/// Rows of a piece: few enough to stay in cache and to feed many threads,
/// and never more than 64 pieces for operations that keep sums for each.
int64_t rows_per_piece(int64_t rows) {
  return std::max<int64_t>(64, (rows + 63) / 64);
}

int64_t pieces(int64_t rows) {
  const int64_t size = rows_per_piece(rows);
  return (rows + size - 1) / size;
}

/// Calls body(piece, first row, rows) for all pieces.
template <typename Body>
void for_rows(int64_t rows, Body body) {
  const int64_t size = rows_per_piece(rows);
  parallel_for(pieces(rows), [&](int64_t piece) {
    body(piece, piece * size, std::min(size, rows - piece * size));
  });
}

/// target = (target +) the pieces' sums, in order of pieces.
void reduce_pieces(float* target, bool accumulate, const float* parts,
                   int64_t count, int64_t width) {
  if (!accumulate) std::memset(target, 0, sizeof(float) * width);
  for (int64_t piece = 0; piece < count; ++piece)
    kernels().add(target, target, parts + piece * width, width);
}

float* target_of(Staging& stage, const GradientTarget& target, int64_t count) {
  return target.accumulate ? stage.update(target.tensor, count)
                           : stage.write(target.tensor, count);
}

}  // namespace

void CpuOps::layernorm_forward(TensorView out, TensorView mean, TensorView rstd,
                               TensorView in, TensorView weight,
                               TensorView bias, int64_t rows, int64_t width) {
  Staging stage(pool_);
  const float* x = stage.read(in, rows * width);
  const float* w = stage.read(weight, width);
  const float* b = stage.read(bias, width);
  float* y = stage.write(out, rows * width);
  for_rows(rows, [&](int64_t, int64_t row, int64_t count) {
    kernels().layernorm(nullptr, y + row * width, mean.as<float>() + row,
                        rstd.as<float>() + row, x + row * width, nullptr, w, b,
                        count, width);
  });
  stage.finish();
}

void CpuOps::residual_layernorm_forward(TensorView residual, TensorView out,
                                        TensorView mean, TensorView rstd,
                                        TensorView a, TensorView b,
                                        TensorView weight, TensorView bias,
                                        int64_t rows, int64_t width) {
  Staging stage(pool_);
  const float* xa = stage.read(a, rows * width);
  const float* xb = stage.read(b, rows * width);
  const float* w = stage.read(weight, width);
  const float* beta = stage.read(bias, width);
  float* sum = stage.write(residual, rows * width);
  float* y = stage.write(out, rows * width);
  for_rows(rows, [&](int64_t, int64_t row, int64_t count) {
    const int64_t at = row * width;
    kernels().layernorm(sum + at, y + at, mean.as<float>() + row,
                        rstd.as<float>() + row, xa + at, xb + at, w, beta,
                        count, width);
  });
  stage.finish();
}

void CpuOps::add(TensorView out, TensorView a, TensorView b) {
  Staging stage(pool_);
  const float* xa = stage.read(a, out.numel);
  const float* xb = stage.read(b, out.numel);
  float* y = stage.write(out, out.numel);
  for_rows(out.numel, [&](int64_t, int64_t at, int64_t count) {
    kernels().add(y + at, xa + at, xb + at, count);
  });
  stage.finish();
}

void CpuOps::layernorm_backward(TensorView din, GradientTarget weight_grad,
                                GradientTarget bias_grad, TensorView dout,
                                TensorView in, TensorView weight,
                                TensorView mean, TensorView rstd, int64_t rows,
                                int64_t width) {
  Staging stage(pool_);
  const float* g = stage.read(dout, rows * width);
  const float* x = stage.read(in, rows * width);
  const float* w = stage.read(weight, width);
  float* dx = stage.update(din, rows * width);
  const int64_t parts = pieces(rows);
  float* weight_parts = stage.scratch(parts * width);
  float* bias_parts = stage.scratch(parts * width);
  for_rows(rows, [&](int64_t piece, int64_t row, int64_t count) {
    const int64_t at = row * width;
    kernels().layernorm_backward(dx + at, weight_parts + piece * width,
                                 bias_parts + piece * width, g + at, x + at, w,
                                 mean.as<float>() + row, rstd.as<float>() + row,
                                 count, width);
  });
  reduce_pieces(target_of(stage, weight_grad, width), weight_grad.accumulate,
                weight_parts, parts, width);
  reduce_pieces(target_of(stage, bias_grad, width), bias_grad.accumulate,
                bias_parts, parts, width);
  stage.finish();
}

void CpuOps::linear_forward(TensorView out, TensorView in, TensorView weight,
                            TensorView bias, TensorView pre_gelu, int64_t rows,
                            int64_t columns_in, int64_t columns_out) {
  Staging stage(pool_);
  const bool gelu = pre_gelu.data != nullptr;
  const float* x = stage.read(in, rows * columns_in);
  const float* w = stage.read(weight, columns_in * columns_out);
  const float* b = stage.read(bias, columns_out);
  float* y = stage.write(out, rows * columns_out);
  float* product = gelu ? stage.write(pre_gelu, rows * columns_out) : y;
  // The product is added to rows of the bias, which saves it a pass of its
  // own and OpenBLAS the pass that clears what it adds to.
  for_rows(rows, [&](int64_t, int64_t row, int64_t count) {
    kernels().repeat_row(product + row * columns_out, b, count, columns_out);
  });
  gemm(product, columns_out, {x, columns_in}, {w, columns_out}, rows,
       columns_out, columns_in, true);
  for_rows(gelu ? rows : 0, [&](int64_t, int64_t row, int64_t count) {
    const int64_t at = row * columns_out;
    kernels().gelu(y + at, product + at, count * columns_out);
  });
  stage.finish();
}

void CpuOps::linear_backward_weight(GradientTarget weight_grad,
                                    GradientTarget bias_grad, TensorView dout,
                                    TensorView in, int64_t rows,
                                    int64_t columns_in, int64_t columns_out) {
  Staging stage(pool_);
  const float* g = stage.read(dout, rows * columns_out);
  const float* x = stage.read(in, rows * columns_in);
  float* dw = target_of(stage, weight_grad, columns_in * columns_out);
  gemm(dw, columns_out, {x, columns_in, true}, {g, columns_out}, columns_in,
       columns_out, rows, weight_grad.accumulate);
  const int64_t parts = pieces(rows);
  float* bias_parts = stage.scratch(parts * columns_out);
  for_rows(rows, [&](int64_t piece, int64_t row, int64_t count) {
    kernels().column_sums(bias_parts + piece * columns_out,
                          g + row * columns_out, count, columns_out);
  });
  reduce_pieces(target_of(stage, bias_grad, columns_out), bias_grad.accumulate,
                bias_parts, parts, columns_out);
  stage.finish();
}

void CpuOps::linear_backward_input(TensorView din, TensorView dout,
                                   TensorView weight, TensorView pre_gelu,
                                   int64_t rows, int64_t columns_in,
                                   int64_t columns_out) {
  Staging stage(pool_);
  const float* g = stage.read(dout, rows * columns_out);
  const float* w = stage.read(weight, columns_in * columns_out);
  float* dx = stage.write(din, rows * columns_in);
  gemm(dx, columns_in, {g, columns_out}, {w, columns_out, true}, rows,
       columns_in, columns_out, false);
  if (pre_gelu.data != nullptr) {
    const float* pre = stage.read(pre_gelu, rows * columns_in);
    for_rows(rows, [&](int64_t, int64_t row, int64_t count) {
      const int64_t at = row * columns_in;
      kernels().gelu_backward(dx + at, pre + at, count * columns_in);
    });
  }
  stage.finish();
}

void CpuOps::head_forward(TensorView logits, TensorView in, TensorView table,
                          int64_t rows, int64_t width, int64_t vocabulary,
                          int64_t padded_vocabulary) {
  Staging stage(pool_);
  const float* x = stage.read(in, rows * width);
  const float* w = stage.read(table, vocabulary * width);
  float* y = stage.write(logits, rows * padded_vocabulary);
  gemm(y, padded_vocabulary, {x, width}, {w, width, true}, rows, vocabulary,
       width, false);
  stage.finish();
}

void CpuOps::head_backward(TensorView din, GradientTarget table_grad,
                           TensorView dlogits, TensorView in, TensorView table,
                           int64_t rows, int64_t width, int64_t vocabulary,
                           int64_t padded_vocabulary) {
  Staging stage(pool_);
  const float* g = stage.read(dlogits, rows * padded_vocabulary);
  const float* x = stage.read(in, rows * width);
  const float* w = stage.read(table, vocabulary * width);
  float* dx = stage.write(din, rows * width);
  float* dw = target_of(stage, table_grad, vocabulary * width);
  gemm(dx, width, {g, padded_vocabulary}, {w, width}, rows, width, vocabulary,
       false);
  gemm(dw, width, {g, padded_vocabulary, true}, {x, width}, vocabulary, width,
       rows, table_grad.accumulate);
  stage.finish();
}

void CpuOps::cross_entropy(TensorView losses, TensorView logits,
                           TensorView targets, int64_t rows, int64_t vocabulary,
                           int64_t padded_vocabulary, float gradient_scale,
                           bool want_gradient) {
  Staging stage(pool_);
  const auto* target = targets.as<std::int32_t>();
  check_tokens(target, rows, kAnyTarget, vocabulary, "target");
  float* y = stage.update(logits, rows * padded_vocabulary);
  for_rows(rows, [&](int64_t, int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row)
      losses.as<float>()[row] =
          kernels().cross_entropy(y + row * padded_vocabulary, target[row],
                                  vocabulary, gradient_scale, want_gradient);
  });
  stage.finish();
}

void CpuOps::mean_loss(float* mean, TensorView losses, double count,
                       bool accumulate) {
  double sum = 0;
  for (int64_t i = 0; i < losses.numel; ++i) sum += losses.as<float>()[i];
  const auto value = static_cast<float>(sum / count);
  *mean = accumulate ? *mean + value : value;
}

std::unique_ptr<Ops> make_cpu_ops(ddp::DType dtype) {
  DDP_EXPECT(dtype == ddp::DType::kFloat32 || dtype == ddp::DType::kBFloat16,
             InvalidArgument,
             "the CPU ops compute in float32 or bfloat16, not ",
             ddp::name(dtype), "; use one of these");
  return std::make_unique<CpuOps>();
}

}  // namespace gpt
