/// \file
/// How the threads of a world come to share one LocalGroup.
#pragma once

#include <memory>

#include "libddp/backends/local/group.h"
#include "libddp/bootstrap/world.h"

namespace ddp {

/// Collective; each call of all ranks makes one new group.
///
/// Rank 0 makes the group and writes the address of its shared_ptr, as text,
/// into the world's store under "local/<n>/group"; n counts the calls of each
/// rank. The address has a meaning in this process alone, which is why ranks
/// must be its threads; a store that is shared with other processes is
/// refused before. The pointer lies on rank 0's stack, and rank 0 does not
/// return before each of the others has said that it holds a copy.
std::shared_ptr<LocalGroup> meet_in_memory(const World& world,
                                           Deadline deadline);

}  // namespace ddp
