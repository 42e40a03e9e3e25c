/// \file
/// World: who takes part in this job, and how this process was started.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/device.h"
#include "libddp/base/environment.h"
#include "libddp/bootstrap/control_plane.h"
#include "libddp/bootstrap/store.h"

namespace ddp {

/// What started this process, in the order in which it is looked for.
enum class LaunchSource {
  kArguments,
  kTorchrun,
  kOpenMpi,
  kPmi,
  kSlurm,
  kAlone,
};

/// "torchrun", "OpenMPI mpirun", ...
std::string_view name(LaunchSource source) noexcept;

/// Where one rank runs.
struct Peer {
  int rank = 0;
  int local_rank = 0;
  int node = 0;      ///< index of the machine, by its lowest rank
  std::string host;  ///< name for people; not an identity
  std::int64_t pid = 0;
  Device device;
  std::string bus_id;  ///< of a GPU; empty on the CPU
};

struct InitOptions {
  /// Rank and size given by the program; both or neither. They win over any
  /// launcher.
  std::optional<int> rank;
  std::optional<int> world_size;
  /// "tcp://host:port", "file:///path", "mpi://", or empty: by the launcher.
  std::string init_method;
  /// Which device this rank uses: "cuda", "cpu", or empty for a GPU where
  /// one is visible.
  std::string device;
  /// Bounds everything that init() waits for, together.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  /// Default bound of collectives and exchanges after init().
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(10);
  /// An MPI_Comm of the caller's (MPI_Comm_c2f), as mpi4py's py2f() gives it;
  /// it is duplicated. MPI must then be initialised.
  std::optional<int> mpi_communicator;
  /// Print one line on rank 0 about launcher, world and devices.
  bool announce = true;
  /// The variables to read; the process's own if not given.
  std::optional<Environment> environment;
};

/// A handle to the state that the ranks of a job share; copies refer to the
/// same world. The last copy to go closes the control connections. Safe to
/// use from any thread.
class World {
 public:
  struct State;
  explicit World(std::shared_ptr<State> state);

  int rank() const noexcept;
  int size() const noexcept;
  int local_rank() const noexcept;
  /// Ranks on this machine.
  int local_size() const noexcept;
  int node() const noexcept;
  int node_count() const noexcept;
  /// The GPU or CPU that this rank computes on.
  Device device() const noexcept;
  /// All ranks in order, this one included.
  const std::vector<Peer>& peers() const noexcept;
  LaunchSource source() const noexcept;
  std::chrono::milliseconds collective_timeout() const noexcept;

  ControlPlane& control() const noexcept;
  Store& store() const noexcept;
  /// Variables as they were at init().
  const Environment& environment() const noexcept;
  /// An MPI communicator over these ranks in rank order (MPI_Comm_c2f), if
  /// they met over MPI. Owned by the world.
  std::optional<int> mpi_communicator() const noexcept;
  /// "rank 3 (node7, pid 4711)", for error texts.
  std::string describe(int rank) const;

 private:
  std::shared_ptr<State> state_;
};

/// Finds out how this process was started, meets the other ranks and returns
/// when all are there. Collective. Throws InvalidArgument when ranks disagree
/// (with hosts and pids of both), Timeout that lists who joined and who is
/// missing, ConnectionLost with every address that was tried.
World init(const InitOptions& options = {});

/// `size` worlds in one process, one for each thread of a test, joined by
/// memory. Index is rank. All on the CPU, one simulated machine each
/// `ranks_per_node` (0: all on one).
std::vector<World> make_thread_worlds(
    int size, std::chrono::milliseconds collective_timeout =
                  std::chrono::seconds(30),
    int ranks_per_node = 0);

}  // namespace ddp
