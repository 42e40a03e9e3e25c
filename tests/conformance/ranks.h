/// \file
/// Ranks: what the conformance suite needs to know of a backend. Each program
/// links the suite with one implementation.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libddp/backends/backend.h"

namespace ddp::conformance {

/// One rank as a test sees it.
struct Rank {
  World world;
  Communicator& communicator;
  StreamView stream;

  int rank() const { return communicator.rank(); }
  int size() const { return communicator.size(); }
};

/// "local", "mpi", ...
std::string backend_name();

/// The world sizes that this program tests: many for threads, that of the
/// launcher for processes.
std::vector<int> world_sizes();

/// Runs `body` as each of `size` ranks that lie in this process (all of them,
/// or one) over a new communicator, and returns when these are done.
void run_on_ranks(int size, const std::function<void(Rank&)>& body);

/// How a test in a world of its own ends.
enum class Ending {
  kTogether,  ///< all ranks are well and wait for each other
  kFailed,    ///< the world has failed, as the test wanted
};

/// The same over a new world whose collectives time out after `timeout`.
void run_in_new_world(int size, Milliseconds timeout, Ending ending,
                      const std::function<void(Rank&)>& body);

}  // namespace ddp::conformance
