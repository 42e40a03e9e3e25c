/// \file
/// The backend of worlds whose ranks are threads of one process.
#pragma once

#include "libddp/backends/backend.h"

namespace ddp {

/// Whether the ranks of `world` are threads of this process.
bool ranks_are_threads(const World& world);

/// Collective. Throws InvalidArgument unless ranks_are_threads(world).
///
/// An operation completes inside the call: it waits for the other ranks up
/// to world.collective_timeout(). Sums are taken in rank order. A rank that
/// fails or calls abort() fails the whole group.
std::unique_ptr<Communicator> make_local(const World& world, Traffic traffic);

}  // namespace ddp
