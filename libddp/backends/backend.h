/// \file
/// The backends by name, and the choice among them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libddp/bootstrap/world.h"
#include "libddp/comm/communicator.h"

namespace ddp {

/// How a communicator trades speed against what it takes from computation.
enum class Traffic {
  kTail,    ///< nothing computes beside it: as fast as it can, and on the
            ///< stream that the caller gives
  kHidden,  ///< under backward: few SMs
  kGather,  ///< gathers of weights: by copy engines where possible
};

/// Opens a communicator over all ranks of `world` on world.device().
/// Collective. `backend` is "nccl", "mpi", "tcp", "local", "solo", or empty:
/// solo for a world of one, local for worlds of threads, nccl on a GPU, and on
/// the CPU mpi for ranks that met over MPI, else tcp. Throws Unavailable naming
/// the build option when the backend is not in this build, and InvalidArgument
/// with the known names for any other name.
std::unique_ptr<Communicator> make_communicator(
    const World& world, const std::string& backend = {},
    Traffic traffic = Traffic::kTail);

/// Names of the backends compiled in.
std::vector<std::string> available_backends();

}  // namespace ddp
