#include "examples/gpt/ops/cuda/cuda_ops.h"

#include "examples/gpt/ops/cuda/attention.h"
#include "examples/gpt/ops/cuda/cross_entropy.h"
#include "examples/gpt/ops/cuda/elementwise.h"
#include "examples/gpt/ops/cuda/embedding.h"
#include "examples/gpt/ops/cuda/layernorm.h"
#include "examples/gpt/ops/cuda/linear.h"
#include "libddp/device/stream.h"

namespace gpt {
namespace {

/// Each member makes the GPU current and hands over to the file of its name.
class CudaOps final : public Ops {
 public:
  CudaOps(ddp::DType dtype, ddp::StreamView stream,
          const CudaOpsOptions& options)
      : stream_(stream),
        dtype_(dtype),
        kind_(options.attention),
        context_(stream),
        linear_(context_, stream, dtype, options) {
    if (kind_ == AttentionKind::kBest && dtype == ddp::DType::kBFloat16)
      library_ =
          cuda::make_cudnn_attention(stream, options.deterministic_attention);
  }

  ddp::StreamView stream() const override { return stream_; }

  std::size_t attention_saved_bytes(const AttentionShape& s) const override {
    return static_cast<std::size_t>(s.batch * s.heads * s.sequence) *
           sizeof(float);
  }

  void embedding_forward(TensorView out, TensorView tokens,
                         TensorView token_table, TensorView position_table,
                         std::int64_t rows, std::int64_t sequence,
                         std::int64_t width) override {
    const ddp::DeviceGuard guard(stream_.device);
    cuda::embedding_forward(context_, {out, tokens, token_table, position_table,
                                       rows, sequence, width});
  }

  void embedding_backward(GradientTarget token_table,
                          GradientTarget position_table, TensorView dout,
                          TensorView tokens, std::int64_t rows,
                          std::int64_t sequence, std::int64_t width,
                          std::int64_t vocabulary) override {
    const ddp::DeviceGuard guard(stream_.device);
    cuda::embedding_backward(
        context_, {token_table, position_table, dout, tokens, rows, sequence,
                   width, vocabulary});
  }

  void layernorm_forward(TensorView out, TensorView mean, TensorView rstd,
                         TensorView in, TensorView weight, TensorView bias,
                         std::int64_t rows, std::int64_t width) override {
    const ddp::DeviceGuard guard(stream_.device);
    cuda::layernorm_forward(
        context_, {out, mean, rstd, {}, in, {}, weight, bias, rows, width});
  }

  void residual_layernorm_forward(TensorView residual, TensorView out,
                                  TensorView mean, TensorView rstd,
                                  TensorView a, TensorView b, TensorView weight,
                                  TensorView bias, std::int64_t rows,
                                  std::int64_t width) override {
    const ddp::DeviceGuard guard(stream_.device);
    cuda::layernorm_forward(
        context_, {out, mean, rstd, residual, a, b, weight, bias, rows, width});
  }

  void add(TensorView out, TensorView a, TensorView b) override {
    const ddp::DeviceGuard guard(stream_.device);
    cuda::add(context_, out, a, b);
  }

  void layernorm_backward(TensorView din, GradientTarget weight_grad,
                          GradientTarget bias_grad, TensorView dout,
                          TensorView in, TensorView weight, TensorView mean,
                          TensorView rstd, std::int64_t rows,
                          std::int64_t width) override {
    const ddp::DeviceGuard guard(stream_.device);
    cuda::layernorm_backward(context_, {din, dout, in, weight, mean, rstd,
                                        weight_grad, bias_grad, rows, width});
  }

  void linear_forward(TensorView out, TensorView in, TensorView weight,
                      TensorView bias, TensorView pre_gelu, std::int64_t rows,
                      std::int64_t columns_in,
                      std::int64_t columns_out) override {
    const ddp::DeviceGuard guard(stream_.device);
    linear_.forward(out, in, weight, bias, pre_gelu, rows, columns_in,
                    columns_out);
  }

  void linear_backward_weight(GradientTarget weight_grad,
                              GradientTarget bias_grad, TensorView dout,
                              TensorView in, std::int64_t rows,
                              std::int64_t columns_in,
                              std::int64_t columns_out) override {
    const ddp::DeviceGuard guard(stream_.device);
    linear_.backward_weight(weight_grad, bias_grad, dout, in, rows, columns_in,
                            columns_out);
  }

  void linear_backward_input(TensorView din, TensorView dout, TensorView weight,
                             TensorView pre_gelu, std::int64_t rows,
                             std::int64_t columns_in,
                             std::int64_t columns_out) override {
    const ddp::DeviceGuard guard(stream_.device);
    linear_.backward_input(din, dout, weight, pre_gelu, rows, columns_in,
                           columns_out);
  }

  void attention_forward(TensorView out, TensorView saved, TensorView qkv,
                         const AttentionShape& shape) override {
    const ddp::DeviceGuard guard(stream_.device);
    const cuda::AttentionForward args{out, saved, qkv, shape};
    if (library_ && library_->forward(context_, args)) return;
    if (may_flash(shape, {out.data, qkv.data}))
      cuda::flash_attention_forward(context_, args);
    else
      cuda::simple_attention_forward(context_, args);
  }

  void attention_backward(TensorView dqkv, TensorView dout, TensorView out,
                          TensorView saved, TensorView qkv,
                          const AttentionShape& shape) override {
    const ddp::DeviceGuard guard(stream_.device);
    const cuda::AttentionBackward args{dqkv, dout, out, saved, qkv, shape};
    if (library_ && library_->backward(context_, args)) return;
    if (may_flash(shape, {dqkv.data, dout.data, out.data, qkv.data}))
      cuda::flash_attention_backward(context_, args);
    else
      cuda::simple_attention_backward(context_, args);
  }

  void head_forward(TensorView logits, TensorView in, TensorView table,
                    std::int64_t rows, std::int64_t width,
                    std::int64_t vocabulary,
                    std::int64_t padded_vocabulary) override {
    const ddp::DeviceGuard guard(stream_.device);
    linear_.head_forward(logits, in, table, rows, width, vocabulary,
                         padded_vocabulary);
  }

  void head_backward(TensorView din, GradientTarget table_grad,
                     TensorView dlogits, TensorView in, TensorView table,
                     std::int64_t rows, std::int64_t width,
                     std::int64_t vocabulary,
                     std::int64_t padded_vocabulary) override {
    const ddp::DeviceGuard guard(stream_.device);
    linear_.head_backward(din, table_grad, dlogits, in, table, rows, width,
                          vocabulary, padded_vocabulary);
  }

  void cross_entropy(TensorView losses, TensorView logits, TensorView targets,
                     std::int64_t rows, std::int64_t vocabulary,
                     std::int64_t padded_vocabulary, float gradient_scale,
                     bool want_gradient) override {
    const ddp::DeviceGuard guard(stream_.device);
    cuda::cross_entropy(
        context_, {losses, logits, targets, rows, vocabulary, padded_vocabulary,
                   gradient_scale, want_gradient});
  }

  void mean_loss(float* mean, TensorView losses, double count,
                 bool accumulate) override {
    const ddp::DeviceGuard guard(stream_.device);
    cuda::mean_loss(context_, mean, losses, count, accumulate);
  }

  std::string_view attention_name() const {
    if (library_) return "cudnn";
    const bool flash =
        kind_ != AttentionKind::kSimple && dtype_ == ddp::DType::kBFloat16;
    return flash ? "flash" : "simple";
  }

 private:
  bool may_flash(const AttentionShape& shape,
                 std::initializer_list<const void*> memory) const {
    return kind_ != AttentionKind::kSimple &&
           cuda::flash_attention_supports(context_, shape, dtype_, memory);
  }

  ddp::StreamView stream_;
  ddp::DType dtype_;
  AttentionKind kind_;
  cuda::Context context_;
  cuda::Linear linear_;
  std::unique_ptr<cuda::LibraryAttention> library_;
};

}  // namespace

std::unique_ptr<Ops> make_cuda_ops(ddp::DType dtype, ddp::StreamView stream,
                                   const CudaOpsOptions& options) {
  DDP_EXPECT(stream.device.is_cuda(), InvalidArgument,
             "make_cuda_ops: the stream belongs to ", name(stream.device),
             "; pass a stream of a GPU, or use make_cpu_ops()");
  DDP_EXPECT(dtype == ddp::DType::kFloat32 || dtype == ddp::DType::kBFloat16,
             InvalidArgument, "make_cuda_ops: activations of ", name(dtype),
             "; use float32 or bfloat16");
  const ddp::DeviceGuard guard(stream.device);
  return std::make_unique<CudaOps>(dtype, stream, options);
}

std::unique_ptr<Ops> make_cuda_ops(ddp::DType dtype, ddp::StreamView stream) {
  return make_cuda_ops(dtype, stream, CudaOpsOptions::from_environment());
}

std::string_view attention_name(const Ops& ops) {
  const auto* const ours = dynamic_cast<const CudaOps*>(&ops);
  return ours ? ours->attention_name() : std::string_view{};
}

}  // namespace gpt
