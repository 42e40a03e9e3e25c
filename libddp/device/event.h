/// \file
/// Event: a point in a stream that other streams and the host can wait for.
#pragma once

#include <memory>

#include "kernels/core/device.h"

namespace ddp {

/// Owns one event of one device. On the CPU, where work is complete when a
/// call returns, all members return at once. Movable; one thread at a time.
class Event {
 public:
  /// `timed` events can be given to elapsed_ms(); others are cheaper.
  explicit Event(Device device, bool timed = false);
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  /// Marks the point that `stream` has reached.
  void record(StreamView stream);
  /// Makes `stream` wait for the recorded point; the host does not wait.
  /// Before the first record() there is nothing to wait for.
  void block(StreamView stream) const;
  /// Whether the recorded point has been reached. Throws DeviceError if the
  /// device reports a failure.
  bool is_complete() const;
  /// Makes the host wait for the recorded point.
  void synchronize() const;
  /// Milliseconds from `start` to `end`, both timed and complete.
  static float elapsed_ms(const Event& start, const Event& end);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ddp
