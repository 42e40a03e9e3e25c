/// \file
/// Identity: what tells one process from another, and what places it on a
/// machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libddp/bootstrap/world.h"

namespace ddp {

/// One process as it introduces itself to the others.
struct Identity {
  int rank = 0;
  int world_size = 1;
  std::string host;  ///< for people only
  std::int64_t pid = 0;
  /// Of the kernel that runs: equal for all containers of one machine.
  std::string boot_id;
  /// Process, host name and network namespaces. Boot id and namespaces
  /// together are the identity of a node.
  std::string namespaces;

  /// This process.
  static Identity of_process(int rank, int world_size);
};

/// "rank 3 (node7, pid 4711)".
std::string describe(const Identity& identity);

/// For the wire; decode throws CorruptData.
std::string encode(const Identity& identity);
Identity decode_identity(std::string_view bytes);

/// Places ranks on nodes: a node's index follows its lowest rank, a local
/// rank follows the order of ranks on the node. `identities` is in rank
/// order; nothing is assumed of how ranks are spread.
std::vector<Peer> place_on_nodes(const std::vector<Identity>& identities);

}  // namespace ddp
