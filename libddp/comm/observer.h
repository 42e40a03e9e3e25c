/// \file
/// Observer: who wants to know when collectives ran. Declared here so that
/// telemetry, above, can implement it.
#pragma once

#include <chrono>
#include <string_view>

#include "libddp/comm/operation.h"

namespace ddp {

/// Called by ObservedCommunicator on the thread that uses the communicator;
/// must return quickly and must not call the communicator.
class Observer {
 public:
  virtual ~Observer() = default;

  /// The operation was handed to the backend at `issued`.
  virtual void on_issue(const Operation& operation,
                        std::chrono::steady_clock::time_point issued) = 0;
  /// It is done. `span` says when it was on the wire. On a GPU it begins when
  /// its input was ready and the operation before it was done, to about
  /// 10 us, which the host's and the device's clocks differ by.
  virtual void on_complete(const Operation& operation, Work::Span span) = 0;
  /// It failed with this text.
  virtual void on_error(const Operation& operation, std::string_view text) = 0;
};

}  // namespace ddp
