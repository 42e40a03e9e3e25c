#include "examples/gpt/train/uploader.h"

#include <cstring>

#include "examples/gpt/ops/tokens.h"

namespace gpt {

Uploader::Uploader(Gpt& model, std::int64_t max_rows)
    : model_(model), max_rows_(max_rows) {
  const ddp::Device device = model.stream().device;
  const auto bytes =
      2 * static_cast<std::size_t>(max_rows) * sizeof(std::int32_t);
  for (std::size_t i = 0; i < kSlots; ++i)
    slots_.push_back(
        {ddp::Buffer::allocate_pinned(bytes, device), ddp::Event(device)});
}

void Uploader::upload(const std::int32_t* tokens, const std::int32_t* targets,
                      std::int64_t rows) {
  check_tokens(tokens, rows, 0, model_.config().vocabulary, "token");
  check_tokens(targets, rows, kAnyTarget, model_.config().vocabulary, "target");
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % kSlots;
  slot.copied.synchronize();
  auto* host = slot.memory.as<std::int32_t>();
  const auto bytes = static_cast<std::size_t>(rows) * sizeof(std::int32_t);
  std::memcpy(host, tokens, bytes);
  std::memcpy(host + max_rows_, targets, bytes);
  ddp::copy_bytes(model_.tokens().data, host, bytes, model_.stream());
  ddp::copy_bytes(model_.targets().data, host + max_rows_, bytes,
                  model_.stream());
  slot.copied.record(model_.stream());
}

}  // namespace gpt
