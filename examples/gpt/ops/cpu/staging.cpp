#include "examples/gpt/ops/cpu/staging.h"

#include <algorithm>
#include <cstdint>

#include "examples/gpt/ops/cpu/threads.h"
#include "kernels/core/half.h"

namespace gpt {
namespace {

constexpr std::int64_t kPiece = 1 << 16;

template <typename Body>
void for_pieces(std::int64_t count, Body body) {
  parallel_for((count + kPiece - 1) / kPiece, [&](std::int64_t piece) {
    body(piece * kPiece, std::min(count, (piece + 1) * kPiece));
  });
}

void check(const ddp::TensorView& tensor, std::int64_t count) {
  DDP_EXPECT(tensor.dtype == ddp::DType::kFloat32 ||
                 tensor.dtype == ddp::DType::kBFloat16,
             InvalidArgument, "the CPU ops take float32 and bfloat16, not ",
             ddp::name(tensor.dtype));
  DDP_EXPECT(tensor.numel >= count, InvalidArgument, "a tensor of ",
             tensor.numel, " elements was given where the shape asks for ",
             count);
}

}  // namespace

float* ScratchPool::take(std::int64_t count) {
  constexpr std::size_t kAlign = 64;
  if (used_ == blocks_.size()) blocks_.emplace_back();
  Block& block = blocks_[used_++];
  if (block.capacity < count) {
    block.bytes.reset();
    block.bytes = std::make_unique_for_overwrite<std::byte[]>(
        static_cast<std::size_t>(count) * sizeof(float) + kAlign);
    const auto address = reinterpret_cast<std::uintptr_t>(block.bytes.get());
    block.data = reinterpret_cast<float*>((address + kAlign - 1) / kAlign *
                                          kAlign);
    block.capacity = count;
  }
  return block.data;
}

const float* Staging::read(ddp::TensorView tensor, std::int64_t count) {
  check(tensor, count);
  if (tensor.dtype == ddp::DType::kFloat32) return tensor.as<float>();
  float* to = pool_.take(count);
  const auto* from = tensor.as<ddp::bfloat16>();
  for_pieces(count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = ddp::to_float(from[i]);
  });
  return to;
}

float* Staging::write(ddp::TensorView tensor, std::int64_t count) {
  check(tensor, count);
  if (tensor.dtype == ddp::DType::kFloat32) return tensor.as<float>();
  float* values = pool_.take(count);
  pending_.push_back({values, tensor, count});
  return values;
}

float* Staging::update(ddp::TensorView tensor, std::int64_t count) {
  const float* values = read(tensor, count);
  if (tensor.dtype == ddp::DType::kFloat32) return tensor.as<float>();
  pending_.push_back({values, tensor, count});
  return const_cast<float*>(values);
}

void Staging::finish() {
  for (const Pending& pending : pending_) {
    auto* to = pending.to.as<ddp::bfloat16>();
    for_pieces(pending.count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        to[i] = ddp::to_bfloat16(pending.from[i]);
    });
  }
  pending_.clear();
}

}  // namespace gpt
