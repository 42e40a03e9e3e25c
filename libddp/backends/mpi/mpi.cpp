#include "libddp/backends/mpi/mpi.h"

#include "libddp/backends/host/host_communicator.h"
#include "libddp/backends/mpi/mpi_call.h"
#include "libddp/backends/mpi/transfers.h"

namespace ddp {

std::unique_ptr<Communicator> make_mpi(const World& world, Traffic) {
  DDP_EXPECT(world.mpi_communicator().has_value(), InvalidArgument,
             world.describe(world.rank()),
             ": backend mpi needs ranks that met over MPI; start them with "
             "mpirun or srun --mpi=pmix, or give init_method \"mpi://\"");
  mpi::check_thread_level();
  // Duplicating cannot be given up: meet over the control plane first.
  (void)world.control().exchange("mpi backend", "",
                                 Deadline::in(world.collective_timeout()));
  MPI_Comm comm = MPI_COMM_NULL;
  DDP_MPI(MPI_Comm_dup(MPI_Comm_f2c(*world.mpi_communicator()), &comm));
  return host::make_communicator("mpi", world, host::group_of(world),
                                 std::make_unique<mpi::MpiTransport>(comm));
}

}  // namespace ddp
