/// \file
/// Finding rank 0's hub and being welcomed there. Private: includes Asio.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libddp/bootstrap/hub_address.h"
#include "libddp/bootstrap/socket.h"
#include "libddp/bootstrap/wire_format.h"

namespace ddp {

/// A connection whose greeting is over.
struct HubLink {
  Tcp::socket socket;
  std::string hub_identity;
};

/// Tries every address of every host with every port, again and again, until
/// a hub welcomes us or the one deadline passes. Throws ConnectionLost that
/// lists each address with what it said (a host that cannot be resolved ends
/// it within seconds, and so does a port that another job or program keeps);
/// InvalidArgument with the hub's words if this rank cannot be in the world.
HubLink connect_to_hub(asio::io_context& io, const HubAddress& address,
                       const Greeting& greeting, Deadline deadline);

/// What one address said to a greeting.
struct Attempt {
  std::optional<Tcp::socket> socket;  ///< connected, if there is an answer
  std::optional<Answer> answer;
  std::string problem;  ///< why there is none
};
Attempt greet(asio::io_context& io, const Tcp::endpoint& endpoint,
              const Greeting& greeting, Deadline deadline);

/// "10.0.0.1:29500", "[::1]:29500".
std::string name(const Tcp::endpoint& endpoint);

/// Asks what listens on a port of this machine: a hub's answer, or nothing
/// if it is something else. Takes at most a second.
std::optional<Answer> probe_local_port(std::uint16_t port,
                                       const std::string& token);

}  // namespace ddp
