/// \file
/// Hub: the server on rank 0 that all ranks are connected to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libddp/base/deadline.h"
#include "libddp/bootstrap/fork_guard.h"
#include "libddp/bootstrap/identity.h"

namespace ddp {

struct HubOptions {
  std::string token;
  /// Of rank 0, with the world size that the others must agree on.
  Identity identity;
  /// Tried in order; 0 is any free port.
  std::vector<std::uint16_t> ports;
  /// Where the ports come from, for error texts.
  std::string origin;
  /// How long a connection may take to greet.
  Milliseconds greeting_limit = std::chrono::seconds(5);
};

/// Holds the keys of a TcpStore and relays exchanges and failures for the
/// control plane. It refuses strangers, and a world whose ranks disagree: then
/// every rank that has come or still comes is told why. A rank whose
/// connection ends before it has left is reported to the others as failed.
///
/// One thread does all the work; the members below may be called from any.
class Hub {
 public:
  /// Throws ConnectionLost naming the ports when all are in use, and
  /// InvalidArgument when the rank 0 of the same job already listens.
  explicit Hub(const HubOptions& options);
  /// Tells the others that rank 0 is done, and gives what has been sent to
  /// them up to a second to be delivered.
  ~Hub();

  std::uint16_t port() const noexcept;
  /// Waits until as many processes as there are ranks have greeted.
  void wait_for_greetings(Deadline deadline);

 private:
  class Server;
  ProcessGuard guard_;
  std::unique_ptr<Server> server_;
};

}  // namespace ddp
