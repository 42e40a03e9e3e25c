#include "kernels/core/error.h"
#include "libddp/bootstrap/mpi_rendezvous.h"

namespace ddp {
namespace {

[[noreturn]] void refuse() {
  throw Unavailable(
      "this build of libddp has no MPI: configure with -DLIBDDP_MPI=ON, or "
      "let the ranks meet with init_method \"tcp://host:port\" (or "
      "MASTER_ADDR and MASTER_PORT)");
}

}  // namespace

bool has_mpi() noexcept { return false; }
bool mpi_speaks_pmi() noexcept { return false; }
bool is_mpi_running() noexcept { return false; }

MpiMeeting meet_over_mpi(const LaunchInfo&, const Environment&,
                         std::optional<int>) {
  refuse();
}

std::string broadcast_over_mpi(const MpiMeeting&,
                               const std::function<std::string()>&, Deadline) {
  refuse();
}

void finalize_mpi(Deadline) noexcept {}

}  // namespace ddp
