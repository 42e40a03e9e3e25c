/// \file
/// FailureWatch: remembers the first failure of another rank and tells those
/// who asked to be told.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "libddp/bootstrap/control_plane.h"

namespace ddp {

/// The half of a ControlPlane that is alike for all of them. Thread-safe.
class FailureWatch {
 public:
  FailureWatch() = default;
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  /// Keeps the first report and has the callbacks called on a thread made for
  /// it, so that a slow one cannot hold up the connection it was heard on.
  void report(const Failure& failure);
  std::optional<Failure> first() const;
  /// As ControlPlane::on_failure() and remove_callback().
  int add(ControlPlane::FailureCallback callback);
  void remove(int id);

 private:
  void call_all();
  static void call(const ControlPlane::FailureCallback& callback,
                   const Failure& failure) noexcept;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Failure> first_;
  std::map<int, ControlPlane::FailureCallback> callbacks_;
  int next_id_ = 1;
  int running_id_ = 0;
  std::thread caller_;
};

}  // namespace ddp
