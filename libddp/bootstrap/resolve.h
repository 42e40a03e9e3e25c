/// \file
/// Names of hosts into addresses, within a deadline. Private: includes Asio.
#pragma once

#include <vector>

#include "libddp/bootstrap/hub_address.h"
#include "libddp/bootstrap/socket.h"

namespace ddp {

/// Every address of every host, with every port: all hosts on the first port
/// first. Throws ConnectionLost within seconds, with the names and their
/// origin quoted, when not one host can be resolved.
std::vector<Tcp::endpoint> resolve_all(const HubAddress& address,
                                       Deadline deadline);

}  // namespace ddp
