/// \file
/// Ranks for tests: threads of this process, or the process itself when a
/// launcher started it.
#pragma once

#include <functional>
#include <vector>

#include "libddp/bootstrap/world.h"

namespace ddp::test {

/// The world sizes that this program can run: that of the launcher, or 1, 2,
/// 3, 4 and 8 threads.
std::vector<int> world_sizes();

/// Runs `body` as every rank of a world of `size`, each in a thread of its
/// own, or once in this process under a launcher. An exception of a rank is
/// thrown here, that of the lowest rank first. A deadline of `timeout` holds
/// for collectives.
void run_ranks(int size, const std::function<void(World&)>& body,
               std::chrono::milliseconds timeout = std::chrono::seconds(30));

}  // namespace ddp::test
