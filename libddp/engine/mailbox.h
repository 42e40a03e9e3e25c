/// \file
/// Mailbox: decisions of past steps on their way to the host.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "kernels/step_vote.h"
#include "libddp/device/buffer.h"
#include "libddp/device/event.h"

namespace ddp {

/// A ring of page-locked slots. The device writes a StepControl into each
/// step's slot; the host reads it when it has arrived. The ring's size bounds
/// how far the host runs ahead.
class Mailbox {
 public:
  struct Letter {
    StepControl control;
    double lr = 0;
    double exposed_ms = 0;
    std::uint32_t step = 0;
  };

  Mailbox(Device device, int capacity);

  /// Marks the end of backward, once a step.
  void mark_backward_end(StreamView stream);
  /// Marks the end of the reduction.
  void mark_reduced(StreamView stream);
  /// Sends *control, in order of `stream`. If all slots are in use, waits for
  /// the oldest first, which goes to the letters that collect() returns.
  void post(const StepControl* control, double lr, std::uint32_t step,
            StreamView stream);
  /// Letters that have arrived since the last call, in order. With `wait`,
  /// all that were posted.
  std::vector<Letter> collect(bool wait);

 private:
  struct Slot {
    explicit Slot(Device device);
    Buffer control;
    Event backward_end, reduced, posted;
    double exposed_ms = 0;  ///< measured by the host, on the CPU
    double lr = 0;
    std::uint32_t step = 0;
  };
  Letter open(Slot& slot) const;
  Slot& next() { return slots_[next_]; }

  Device device_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  std::size_t in_flight_ = 0;
  bool backward_marked_ = false;
  double backward_end_ms_ = 0;
  std::deque<Letter> arrived_;
};

}  // namespace ddp
