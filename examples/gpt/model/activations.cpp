#include "examples/gpt/model/activations.h"

namespace gpt {
namespace {

/// Gives out pieces of a plan on multiples of 256 bytes. Run twice: without
/// memory to learn the size, then with it.
class Cutter {
 public:
  explicit Cutter(const ddp::Buffer* memory) : memory_(memory) {}

  TensorView take(std::int64_t numel, ddp::DType dtype) {
    const std::size_t at = bytes_;
    bytes_ += (static_cast<std::size_t>(numel) * ddp::size_of(dtype) + 255) /
              256 * 256;
    return memory_ ? memory_->view(at, numel, dtype) : TensorView{};
  }
  std::size_t bytes() const { return bytes_; }

 private:
  const ddp::Buffer* memory_;
  std::size_t bytes_ = 0;
};

struct Sizes {
  std::int64_t rows;
  std::int64_t width;
  std::int64_t padded_vocabulary;
  std::int64_t saved;
  ddp::DType dtype;
};

BlockActivations cut_block(Cutter& cutter, const Sizes& size) {
  const auto values = [&](std::int64_t columns) {
    return cutter.take(size.rows * columns, size.dtype);
  };
  const auto statistics = [&] {
    return cutter.take(size.rows, ddp::DType::kFloat32);
  };
  BlockActivations block;
  block.ln1 = values(size.width);
  block.ln1_mean = statistics();
  block.ln1_rstd = statistics();
  block.qkv = values(3 * size.width);
  block.saved = cutter.take(size.saved, ddp::DType::kUInt8);
  block.attention = values(size.width);
  block.middle = values(size.width);
  block.ln2 = values(size.width);
  block.ln2_mean = statistics();
  block.ln2_rstd = statistics();
  block.pre_gelu = values(4 * size.width);
  block.gelu = values(4 * size.width);
  block.out = values(size.width);
  return block;
}

void cut(Activations& all, Cutter& cutter, const Sizes& size) {
  const auto values = [&](std::int64_t columns) {
    return cutter.take(size.rows * columns, size.dtype);
  };
  const auto per_row = [&](ddp::DType dtype) {
    return cutter.take(size.rows, dtype);
  };
  all.embedding = values(size.width);
  for (BlockActivations& block : all.blocks) block = cut_block(cutter, size);
  all.ln_f = values(size.width);
  all.ln_f_mean = per_row(ddp::DType::kFloat32);
  all.ln_f_rstd = per_row(ddp::DType::kFloat32);
  all.logits = values(size.padded_vocabulary);
  all.losses = per_row(ddp::DType::kFloat32);
  all.mean_loss = cutter.take(1, ddp::DType::kFloat32);
  all.tokens = per_row(ddp::DType::kInt32);
  all.targets = per_row(ddp::DType::kInt32);
  all.dresidual = values(size.width);
  all.branch = values(size.width);
  all.wide = values(4 * size.width);
}

}  // namespace

Activations::Activations(const GptConfig& config, std::int64_t max_batch,
                         std::int64_t max_sequence, ddp::DType dtype,
                         const Ops& ops)
    : blocks(static_cast<std::size_t>(config.layers)) {
  const AttentionShape shape{max_batch, max_sequence, config.heads,
                             config.head_size()};
  const Sizes size{
      max_batch * max_sequence, config.width, config.padded_vocabulary(),
      static_cast<std::int64_t>(ops.attention_saved_bytes(shape)), dtype};
  Cutter measure(nullptr);
  cut(*this, measure, size);
  memory = ddp::Buffer::allocate(measure.bytes(), ops.stream().device);
  Cutter cutter(&memory);
  cut(*this, cutter, size);
}

}  // namespace gpt
