/// \file
/// Work: a collective that has been issued and may not be done.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "kernels/core/device.h"
#include "libddp/base/deadline.h"

namespace ddp {

/// Handle to one operation in flight. The tensors given to the operation must
/// stay alive, and must not be touched, until the work is complete in the
/// stream order of whoever touches them. Dropping a Work neither waits nor
/// cancels. Copies refer to the same operation; all members are thread-safe.
class [[nodiscard]] Work {
 public:
  /// When an operation was on the wire, on the host's steady clock.
  struct Span {
    std::chrono::steady_clock::time_point started;
    std::chrono::steady_clock::time_point ended;
  };

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
    /// When it ran, once complete, from backends whose own thread runs it.
    virtual std::optional<Span> span() const noexcept { return {}; }
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
  std::optional<Span> span() const noexcept {
    return state_ ? state_->span() : std::nullopt;
  }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace ddp
