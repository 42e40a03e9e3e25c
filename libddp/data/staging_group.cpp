#include "libddp/data/staging_group.h"

#include <algorithm>

#include "libddp/bootstrap/world.h"

namespace ddp {

StagingGroup StagingGroup::of(const World& world) {
  const auto& peers = world.peers();
  const auto first =
      std::find_if(peers.begin(), peers.end(),
                   [&](const Peer& peer) { return peer.node == world.node(); });
  return {.rank = world.rank(),
          .stager = first->rank,
          .description = world.describe(world.rank()),
          .control = &world.control()};
}

}  // namespace ddp
