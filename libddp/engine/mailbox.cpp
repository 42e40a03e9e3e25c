#include "libddp/engine/mailbox.h"

#include <chrono>
#include <cstring>

namespace ddp {
namespace {

double now_ms() {
  const std::chrono::duration<double, std::milli> since_boot =
      std::chrono::steady_clock::now().time_since_epoch();
  return since_boot.count();
}

}  // namespace

Mailbox::Slot::Slot(Device device)
    : control(Buffer::allocate_pinned(sizeof(StepControl), device)),
      backward_end(device, /*timed=*/true),
      reduced(device, /*timed=*/true),
      posted(device) {}

Mailbox::Mailbox(Device device, int capacity) : device_(device) {
  for (int i = 0; i < capacity; ++i) slots_.emplace_back(device);
}

void Mailbox::mark_backward_end(StreamView stream) {
  if (backward_marked_) return;
  if (in_flight_ == slots_.size()) {  // the slot to use next is the oldest
    next().posted.synchronize();
    arrived_.push_back(open(next()));
    --in_flight_;
  }
  backward_marked_ = true;
  backward_end_ms_ = now_ms();
  next().backward_end.record(stream);
}

void Mailbox::mark_reduced(StreamView stream) {
  next().exposed_ms = now_ms() - backward_end_ms_;
  next().reduced.record(stream);
}

void Mailbox::post(const StepControl* control, double lr, std::uint32_t step,
                   StreamView stream) {
  Slot& slot = next();
  copy_bytes(slot.control.data(), control, sizeof(StepControl), stream);
  slot.posted.record(stream);
  slot.lr = lr;
  slot.step = step;
  next_ = (next_ + 1) % slots_.size();
  ++in_flight_;
  backward_marked_ = false;
}

Mailbox::Letter Mailbox::open(Slot& slot) const {
  Letter letter;
  std::memcpy(&letter.control, slot.control.data(), sizeof(StepControl));
  letter.lr = slot.lr;
  letter.step = slot.step;
  letter.exposed_ms = device_.is_cpu()
                          ? slot.exposed_ms
                          : Event::elapsed_ms(slot.backward_end, slot.reduced);
  return letter;
}

std::vector<Mailbox::Letter> Mailbox::collect(bool wait) {
  while (in_flight_ > 0) {
    Slot& oldest = slots_[(next_ + slots_.size() - in_flight_) % slots_.size()];
    if (wait)
      oldest.posted.synchronize();
    else if (!oldest.posted.is_complete())
      break;
    arrived_.push_back(open(oldest));
    --in_flight_;
  }
  std::vector<Letter> letters(arrived_.begin(), arrived_.end());
  arrived_.clear();
  return letters;
}

}  // namespace ddp
