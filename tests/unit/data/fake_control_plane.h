/// \file
/// ControlPlanes of the threads of one test, joined by memory.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "libddp/bootstrap/control_plane.h"

namespace ddp {

/// What the ranks of one test share.
class FakeExchange {
 public:
  explicit FakeExchange(int size) : messages_(size), has_(size) {}

  std::vector<std::string> exchange(int rank, std::string_view message,
                                    Deadline deadline) {
    std::unique_lock lock(mutex_);
    messages_[rank] = message;
    has_[rank] = true;
    arrived_.notify_all();
    const bool are_all_here = arrived_.wait_until(lock, deadline.at(), [&] {
      return std::find(has_.begin(), has_.end(), false) == has_.end();
    });
    DDP_EXPECT(are_all_here, Timeout, "exchange: a rank is missing");
    return messages_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::string> messages_;
  std::vector<bool> has_;
};

/// Carries one exchange; the rest of the interface does nothing.
class FakeControlPlane : public ControlPlane {
 public:
  FakeControlPlane(FakeExchange& shared, int rank)
      : shared_(shared), rank_(rank) {}
  std::vector<std::string> exchange(std::string_view, std::string_view message,
                                    Deadline deadline) override {
    return shared_.exchange(rank_, message, deadline);
  }
  void announce_failure(ErrorKind, std::string_view) noexcept override {}
  std::optional<Failure> failure() const override { return std::nullopt; }
  int on_failure(FailureCallback) override { return 0; }
  void remove_callback(int) override {}
  void leave() noexcept override {}

 private:
  FakeExchange& shared_;
  int rank_;
};

}  // namespace ddp
