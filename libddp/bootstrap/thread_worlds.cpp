#include "kernels/core/error.h"
#include "libddp/bootstrap/identity.h"
#include "libddp/bootstrap/memory_control_plane.h"
#include "libddp/bootstrap/memory_store.h"
#include "libddp/bootstrap/world_state.h"

namespace ddp {
namespace {

std::vector<Peer> simulate_peers(int size, int ranks_per_node) {
  const auto self = Identity::of_process(0, size);
  std::vector<Peer> peers;
  for (int rank = 0; rank < size; ++rank) {
    Peer peer;
    peer.rank = rank;
    peer.node = ranks_per_node > 0 ? rank / ranks_per_node : 0;
    peer.local_rank = ranks_per_node > 0 ? rank % ranks_per_node : rank;
    peer.host = self.host;
    peer.pid = self.pid;
    peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace

std::vector<World> make_thread_worlds(
    int size, std::chrono::milliseconds collective_timeout,
    int ranks_per_node) {
  DDP_EXPECT(size >= 1 && ranks_per_node >= 0, InvalidArgument,
             "make_thread_worlds(size=", size,
             ", ranks_per_node=", ranks_per_node,
             "): a world has at least one rank");
  const auto peers = simulate_peers(size, ranks_per_node);
  auto planes = make_memory_control_planes(size, [&](int rank) {
    const auto& peer = peers[static_cast<std::size_t>(rank)];
    return concat("rank ", rank, " (", peer.host, ", pid ", peer.pid, ")");
  });
  const auto store = std::make_shared<MemoryStore>();
  std::vector<World> worlds;
  for (int rank = 0; rank < size; ++rank) {
    auto state = World::State::make();
    state->identity_rank = rank;
    state->peers = peers;
    state->source = LaunchSource::kArguments;
    state->collective_timeout = collective_timeout;
    state->rendezvous.store = store;
    state->rendezvous.control =
        std::move(planes[static_cast<std::size_t>(rank)]);
    count_nodes(*state);
    worlds.emplace_back(std::move(state));
  }
  return worlds;
}

}  // namespace ddp
