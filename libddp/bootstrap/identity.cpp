#include "libddp/bootstrap/identity.h"

#include <limits.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <map>
#include <utility>

#include "kernels/core/error.h"
#include "libddp/bootstrap/wire_format.h"

namespace ddp {
namespace {

std::string read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string read_namespaces() {
  std::string all;
  for (const char* kind : {"pid", "uts", "net"}) {
    std::array<char, 128> target{};
    const std::string path = std::string("/proc/self/ns/") + kind;
    const auto length = ::readlink(path.c_str(), target.data(), target.size());
    if (length > 0) all.append(target.data(), static_cast<size_t>(length));
  }
  return all;
}

std::string read_host() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data()
                                                          : "unknown";
}

}  // namespace

Identity Identity::of_process(int rank, int world_size) {
  Identity identity;
  identity.rank = rank;
  identity.world_size = world_size;
  identity.host = read_host();
  identity.pid = ::getpid();
  identity.boot_id = read_boot_id();
  // Without a boot id the host name is the best there is.
  if (identity.boot_id.empty()) identity.boot_id = identity.host;
  identity.namespaces = read_namespaces();
  return identity;
}

std::string describe(const Identity& identity) {
  return concat("rank ", identity.rank, " (", identity.host, ", pid ",
                identity.pid, ")");
}

std::string encode(const Identity& identity) {
  WireWriter out;
  out.number(identity.rank);
  out.number(identity.world_size);
  out.text(identity.host);
  out.number(identity.pid);
  out.text(identity.boot_id);
  out.text(identity.namespaces);
  return out.take();
}

Identity decode_identity(std::string_view bytes) {
  WireReader in(bytes);
  Identity identity;
  identity.rank = in.small_number();
  identity.world_size = in.small_number();
  identity.host = in.text();
  identity.pid = in.number();
  identity.boot_id = in.text();
  identity.namespaces = in.text();
  return identity;
}

std::vector<Peer> place_on_nodes(const std::vector<Identity>& identities) {
  struct Node {
    int index;
    int ranks;
  };
  std::map<std::pair<std::string, std::string>, Node> nodes;
  std::vector<Peer> peers;
  peers.reserve(identities.size());
  for (const auto& identity : identities) {
    const auto next = static_cast<int>(nodes.size());
    auto& node =
        nodes
            .try_emplace({identity.boot_id, identity.namespaces}, Node{next, 0})
            .first->second;
    Peer peer;
    peer.rank = identity.rank;
    peer.local_rank = node.ranks++;
    peer.node = node.index;
    peer.host = identity.host;
    peer.pid = identity.pid;
    peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace ddp
