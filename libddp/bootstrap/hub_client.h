/// \file
/// HubClient: a rank's one connection to the hub, shared by its store and its
/// control plane.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "libddp/bootstrap/failure_watch.h"
#include "libddp/bootstrap/fork_guard.h"
#include "libddp/bootstrap/hub_address.h"
#include "libddp/bootstrap/wire_format.h"

namespace ddp {

/// Sends requests and waits for their replies; many threads may wait at once.
/// A thread of its own reads what comes. In a forked child every request
/// throws InvalidArgument.
class HubClient {
 public:
  /// As connect_to_hub(): one deadline, typed errors. The greeting's token is
  /// the address's.
  HubClient(const HubAddress& address, Greeting greeting, Deadline deadline);
  ~HubClient();

  enum class Interrupt {
    kNever,
    kByFailure,  ///< throw PeerFailure when another rank fails meanwhile
  };
  /// The reply's text, or nothing when the deadline passes first. `body` is
  /// the payload behind the request's number. Throws what the hub replied,
  /// PeerFailure when the hub is gone, InvalidArgument when the ranks
  /// disagreed. `what` names the act for error texts.
  std::optional<std::string> request(FrameType type, std::string_view body,
                                     Deadline deadline, std::string_view what,
                                     Interrupt interrupt = Interrupt::kNever);

  /// Throws in a forked child; `what` was to be done.
  void check_process(std::string_view what) const { guard_.check(what); }
  /// "rank 3 (node7, pid 4711)", this one.
  const std::string& self() const noexcept { return self_; }
  FailureWatch& failures() noexcept;
  /// Closes the connection; from now on requests throw PeerFailure.
  void disconnect() noexcept;
  /// From now on the end of the connection is no failure.
  void expect_end() noexcept;

 private:
  class Impl;
  ProcessGuard guard_;
  std::string self_ = "a process outside the world";
  std::unique_ptr<Impl> impl_;
};

}  // namespace ddp
