/// \file
/// Flight: one operation between its launch and its end on the device.
#pragma once

#include <atomic>
#include <chrono>

#include "libddp/comm/operation.h"
#include "libddp/device/event.h"

namespace ddp::nccl {

/// Shared by the Work that the caller holds and the watchdog's list, which
/// outlives a Work that was dropped.
struct Flight {
  Operation operation;
  StreamView stream;  ///< where it runs
  Event end;          ///< recorded after the operation on that stream
  /// Seen complete before the communicator failed: its result is good.
  std::atomic<bool> is_done = false;

  Flight(const Operation& what, StreamView where, Event event)
      : operation(what), stream(where), end(std::move(event)) {}
};

}  // namespace ddp::nccl
