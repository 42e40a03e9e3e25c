#include "kernels/core/error.h"
#include "libddp/backends/mpi/mpi.h"

namespace ddp {

std::unique_ptr<Communicator> make_mpi(const World&, Traffic) {
  throw Unavailable(
      "backend mpi is not in this build; install MPI (apt-get install "
      "libopenmpi-dev, or dnf install openmpi-devel) and configure with "
      "-DLIBDDP_MPI=ON");
}

}  // namespace ddp
