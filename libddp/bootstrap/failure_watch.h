/// \file
/// FailureWatch: remembers the first failure of another rank and tells those
/// who asked to be told.
#pragma once

#include <memory>
#include <optional>

#include "libddp/bootstrap/control_plane.h"

namespace ddp {

/// The half of a ControlPlane that is alike for all of them. Thread-safe.
class FailureWatch {
 public:
  FailureWatch();
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
  struct Shared;
  /// Shared with the thread that calls, since a callback may drop the last
  /// handle to the world and with it this watch.
  std::shared_ptr<Shared> shared_;
};

}  // namespace ddp
