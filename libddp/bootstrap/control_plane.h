/// \file
/// ControlPlane: the connection between ranks that carries plans and errors.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/error.h"
#include "libddp/base/deadline.h"

namespace ddp {

/// What one rank tells the others about its end.
struct Failure {
  int rank = -1;
  ErrorKind kind = ErrorKind::kPeerFailure;
  std::string text;  ///< names rank, host and pid, and says what happened
};

/// Stays open as long as the world, on connections of its own, so that it
/// works when a collective hangs. All members are thread-safe.
class ControlPlane {
 public:
  using FailureCallback = std::function<void(const Failure&)>;

  virtual ~ControlPlane() = default;

  /// Collective: gives every rank the message of every rank, in rank order.
  /// `topic` must be equal on all ranks; calls with one topic match in the
  /// order they are made. Throws Timeout that lists the ranks whose message
  /// is missing, or PeerFailure as soon as a rank has failed.
  virtual std::vector<std::string> exchange(std::string_view topic,
                                            std::string_view message,
                                            Deadline deadline) = 0;

  /// Tells all other ranks that this one has failed. Not collective, returns
  /// within a second, and only the first call of a rank counts.
  virtual void announce_failure(ErrorKind kind,
                                std::string_view text) noexcept = 0;

  /// The first failure of another rank that was heard of: announced, or
  /// noticed because its connection ended before it left.
  virtual std::optional<Failure> failure() const = 0;

  /// Calls `callback` once on a control thread when another rank fails, or at
  /// once on this thread if one has. Returns an id for remove_callback().
  virtual int on_failure(FailureCallback callback) = 0;
  /// After it returns the callback is not running and will not be called.
  virtual void remove_callback(int id) = 0;

  /// This rank is done: its connection may end without being a failure.
  virtual void leave() noexcept = 0;
};

}  // namespace ddp
