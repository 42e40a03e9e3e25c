/// \file
/// Ranks that meet over MPI. In a build without MPI the same functions exist
/// and throw Unavailable (mpi_unavailable.cpp).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "libddp/base/deadline.h"
#include "libddp/base/environment.h"
#include "libddp/bootstrap/launcher.h"

namespace ddp {

/// Whether this build has MPI.
bool has_mpi() noexcept;
/// Whether that MPI can be served by PMI-1 and PMI-2 (MPICH and its kin, but
/// not OpenMPI, which aborts where it finds no PMIx).
bool mpi_speaks_pmi() noexcept;
/// Whether the program has initialised MPI already (and not yet finalised).
bool is_mpi_running() noexcept;

/// A communicator of our own over all ranks of the job.
struct MpiMeeting {
  int communicator = 0;  ///< MPI_Comm_c2f of the duplicate
  int rank = 0;
  int size = 1;
};

/// Initialises MPI if nobody has, duplicates `communicator` (the world if not
/// given) with ranks in the order of `launch`, and checks that MPI sees as
/// many ranks as the launcher started. Collective over the communicator.
/// Throws InvalidArgument that names the fix when MPI sees other ranks than
/// the launcher, Unavailable when MPI has ended or has no thread support.
MpiMeeting meet_over_mpi(const LaunchInfo& launch,
                         const Environment& environment,
                         std::optional<int> communicator);

/// Gives every rank what rank 0's `make` returns; what it throws is thrown on
/// all. Collective over the meeting. Throws Timeout at the deadline.
std::string broadcast_over_mpi(const MpiMeeting& meeting,
                               const std::function<std::string()>& make,
                               Deadline deadline);

/// Ends MPI if we began it. To be called when the process exits: waits until
/// all ranks do, at most until the deadline, and then leaves MPI as it is.
void finalize_mpi(Deadline deadline) noexcept;

}  // namespace ddp
