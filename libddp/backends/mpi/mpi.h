/// \file
/// The backend of host memory between processes, over MPI.
#pragma once

#include "libddp/backends/backend.h"

namespace ddp {

/// Collective over the world's MPI communicator, which is duplicated.
/// Throws Unavailable in a build without MPI, InvalidArgument if the world
/// did not meet over MPI.
std::unique_ptr<Communicator> make_mpi(const World& world, Traffic traffic);

}  // namespace ddp
