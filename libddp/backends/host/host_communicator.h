/// \file
/// The communicator of backends that move messages of host memory.
#pragma once

#include "libddp/backends/host/transfers.h"
#include "libddp/bootstrap/world.h"
#include "libddp/comm/communicator.h"

namespace ddp::host {

/// All operations, by the algorithms of this folder over `transport`, on a
/// thread of the communicator's own and within world.collective_timeout().
/// `backend` is a literal.
std::unique_ptr<Communicator> make_communicator(
    std::string_view backend, const World& world, Group group,
    std::unique_ptr<Transport> transport);

/// All ranks of `world`.
Group group_of(const World& world);

}  // namespace ddp::host
