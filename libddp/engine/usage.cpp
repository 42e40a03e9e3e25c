#include "libddp/engine/usage.h"

#include "libddp/device/stream.h"

namespace ddp {

UsageVote::Slot::Slot(std::size_t bytes, Device device)
    : flags(Buffer::allocate_pinned(bytes, device)), copied(device) {}

UsageVote::UsageVote(int parameters, Communicator& communicator, int capacity)
    : parameters_(parameters), communicator_(communicator) {
  const Device device = communicator.device();
  const std::size_t flag_bytes = sizeof(std::int32_t) * parameters;
  for (int i = 0; i < capacity; ++i) slots_.emplace_back(flag_bytes, device);
  used_ = Buffer::allocate(flag_bytes, device);
  time_ = Buffer::allocate(sizeof(std::int64_t) * parameters, device);
  Stream stream(device);
  zero_bytes(time_.data(), time_.bytes(), stream);
  set_all_used(stream);
  synchronize(stream);
}

void UsageVote::exchange(const std::function<bool(int)>& used,
                         StreamView stream) {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  slot.copied.synchronize();  // long done unless the ring went round
  auto* flags = slot.flags.as<std::int32_t>();
  for (int p = 0; p < parameters_; ++p) flags[p] = used(p) ? 1 : 0;
  copy_bytes(used_.data(), flags, used_.bytes(), stream);
  slot.copied.record(stream);
  communicator_
      .all_reduce(used_.view(0, parameters_, DType::kInt32), ReduceOp::kSum,
                  stream)
      .block(stream);
}

void UsageVote::set_all_used(StreamView stream) {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  slot.copied.synchronize();
  auto* flags = slot.flags.as<std::int32_t>();
  for (int p = 0; p < parameters_; ++p) flags[p] = 1;
  copy_bytes(used_.data(), flags, used_.bytes(), stream);
  slot.copied.record(stream);
}

ParameterClocks UsageVote::clocks() const {
  return {used_.as<std::int32_t>(), time_.as<std::int64_t>(), parameters_};
}

}  // namespace ddp
