/// \file
/// How this process was started, judged by its environment alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libddp/base/environment.h"
#include "libddp/bootstrap/world.h"

namespace ddp {

/// What the environment says about this process.
struct LaunchInfo {
  LaunchSource source = LaunchSource::kAlone;
  int rank = 0;
  int world_size = 1;
  /// Place on the machine as the launcher counts it, where it says so.
  std::optional<int> local_rank;
  std::optional<int> local_size;
  /// Whether a process manager that MPI_Init can talk to (OpenMPI's, PMIx or
  /// PMI) started this process.
  bool has_process_manager = false;
  /// Name and value of what rank and size were read from, for error texts.
  std::string variables;
  /// Lines that a person should see once.
  std::vector<std::string> notices;
};

/// Looks for launchers in the order of LaunchSource and takes the first.
/// `rank` and `world_size` are the program's own and win. Throws
/// InvalidArgument when just one of them is given, or when the variables of
/// the chosen launcher contradict each other; the text lists them. A rank
/// outside the world is left to check_rank().
LaunchInfo detect_launch(const Environment& environment,
                         std::optional<int> rank = std::nullopt,
                         std::optional<int> world_size = std::nullopt);

/// Throws InvalidArgument unless 0 <= rank < world_size.
void check_rank(const LaunchInfo& launch);

/// Whether a Slurm step started by srun holds this process. Variables of the
/// job alone do not count: a batch script and salloc's shell have them too.
bool is_in_slurm_step(const Environment& environment);

/// Whether this process is itself a task of such a step, and not started by
/// an mpirun whose daemon is.
bool is_sruns_task(const Environment& environment);

/// "RANK=4, WORLD_SIZE is not set", for error texts.
std::string quote_variables(const Environment& environment,
                            const std::vector<std::string>& names);

}  // namespace ddp
