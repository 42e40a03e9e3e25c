/// \file
/// Work: a collective that has been issued and may not be done.
#pragma once

#include <memory>

#include "kernels/core/device.h"
#include "libddp/base/deadline.h"

namespace ddp {

/// Handle to one operation in flight. The tensors given to the operation must
/// stay alive, and must not be touched, until the work is complete in the
/// stream order of whoever touches them. Dropping a Work neither waits nor
/// cancels. Copies refer to the same operation; all members are thread-safe.
class [[nodiscard]] Work {
 public:
  /// What a backend implements.
  class State {
   public:
    virtual ~State() = default;
    /// Blocks the host until done or the deadline; throws what went wrong.
    virtual void wait(Deadline deadline) = 0;
    /// Makes work enqueued on `stream` from now on come after this one. On
    /// the CPU it blocks, under the operation's own timeout.
    virtual void block(StreamView stream) = 0;
    /// Done, successfully or not; never blocks, never throws.
    virtual bool is_complete() const noexcept = 0;
  };

  /// Already complete.
  Work() = default;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  void wait(Deadline deadline) const {
    if (state_) state_->wait(deadline);
  }
  void block(StreamView stream) const {
    if (state_) state_->block(stream);
  }
  bool is_complete() const noexcept { return !state_ || state_->is_complete(); }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace ddp
