/// \file
/// Backoff: how a thread waits for something that must be polled, without
/// taking the core from those who compute.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace ddp::mpi {

/// Yields while nobody else wants the core, so that short waits cost little,
/// else sleeps for longer and longer.
///
/// Beside a computing thread sleeps are better than yields: a yield gives the
/// core away for a whole time slice (some ms), whereas a thread that wakes
/// from a sleep is preferred over one that has been running. So a yield that
/// took long is the sign to sleep, for this wait and those that follow soon.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;

  /// Yields for at most `yielding`.
  explicit Backoff(std::chrono::microseconds yielding)
      : began_(Clock::now()), yielding_(yielding) {
    if (began_ - last_crowded() < kMemory) sleep_ = kShortest;
  }

  void pause() {
    if (sleep_ == std::chrono::microseconds::zero()) {
      const auto before = Clock::now();
      if (before - began_ < yielding_) {
        std::this_thread::yield();
        const auto after = Clock::now();
        if (after - before < kCrowded) return;
        last_crowded() = after;
      }
      sleep_ = kShortest;
    }
    std::this_thread::sleep_for(sleep_);
    sleep_ = std::min(sleep_ * 2, kLongest);
  }
  /// Whether pause() still returns almost at once.
  bool is_yielding() const {
    return sleep_ == std::chrono::microseconds::zero() &&
           Clock::now() - began_ < yielding_;
  }

 private:
  static constexpr std::chrono::microseconds kCrowded{100};
  static constexpr std::chrono::milliseconds kMemory{10};
  static constexpr std::chrono::microseconds kShortest{10};
  static constexpr std::chrono::microseconds kLongest{200};

  // When a yield of this thread last took long.
  static Clock::time_point& last_crowded() {
    thread_local Clock::time_point when{};
    return when;
  }

  Clock::time_point began_;
  std::chrono::microseconds yielding_;
  std::chrono::microseconds sleep_{0};
};

}  // namespace ddp::mpi
