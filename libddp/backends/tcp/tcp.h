/// \file
/// The backend of host memory between processes, over sockets.
#pragma once

#include "libddp/backends/backend.h"

namespace ddp {

/// Collective over the control plane, by which ranks tell each other where
/// they listen; then each connects to each. Ports come from LIBDDP_PORT_RANGE
/// if it is set. Throws Timeout or ConnectionLost, with the addresses that
/// were tried, when ranks do not reach each other in
/// world.collective_timeout().
std::unique_ptr<Communicator> make_tcp(const World& world, Traffic traffic);

}  // namespace ddp
