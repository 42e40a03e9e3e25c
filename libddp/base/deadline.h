/// \file
/// Deadline: a point in time that a wait must not pass.
#pragma once

#include <algorithm>
#include <chrono>

namespace ddp {

using Milliseconds = std::chrono::milliseconds;

/// A point on the steady clock. Passing one deadline through nested waits
/// bounds them all together, where passing durations would add them up.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  /// `duration` from now.
  static Deadline in(Clock::duration duration) {
    const auto now = Clock::now();
    // Saturates: a very long duration means no deadline.
    return duration > Clock::time_point::max() - now
               ? never()
               : Deadline(now + duration, duration);
  }
  static Deadline never() {
    return Deadline(Clock::time_point::max(), Clock::duration::max());
  }

  bool has_passed() const { return Clock::now() >= at_; }
  /// Time left; zero once it has passed.
  Clock::duration remaining() const {
    if (at_ == Clock::time_point::max()) return Clock::duration::max();
    return std::max(Clock::duration::zero(), at_ - Clock::now());
  }
  Clock::time_point at() const { return at_; }
  /// What in() was given, for error texts.
  double seconds_given() const {
    return std::chrono::duration<double>(given_).count();
  }

 private:
  Deadline(Clock::time_point at, Clock::duration given)
      : at_(at), given_(given) {}
  Clock::time_point at_;
  Clock::duration given_;
};

}  // namespace ddp
