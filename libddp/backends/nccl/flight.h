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
  Event end;  ///< recorded after the operation on the communicator's stream
  /// Seen complete before the communicator failed: its result is good.
  std::atomic<bool> is_done = false;

  Flight(const Operation& what, Event event)
      : operation(what), end(std::move(event)) {}
};

}  // namespace ddp::nccl
