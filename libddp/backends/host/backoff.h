/// \file
/// Backoff: how a thread waits for something that must be polled, without
/// taking the core from those who compute.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace ddp::host {

/// Yields for a while, so that short waits cost little, then sleeps for
/// longer and longer.
///
/// Sleeps are better than yields beside a computing thread: a yield gives the
/// core away for a whole time slice (some ms), whereas a thread that wakes
/// from a sleep is preferred over one that has been running.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kYielding{60};
  static constexpr std::chrono::microseconds kShortest{10};
  static constexpr std::chrono::microseconds kLongest{200};

  void pause() {
    if (sleep_ == std::chrono::microseconds::zero()) {
      if (Clock::now() - began_ < kYielding) {
        std::this_thread::yield();
        return;
      }
      sleep_ = kShortest;
    }
    std::this_thread::sleep_for(sleep_);
    sleep_ = std::min(sleep_ * 2, kLongest);
  }
  bool is_yielding() const { return Clock::now() - began_ < kYielding; }

 private:
  Clock::time_point began_ = Clock::now();
  std::chrono::microseconds sleep_{0};
};

}  // namespace ddp::host
