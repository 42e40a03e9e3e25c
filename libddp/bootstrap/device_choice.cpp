#include "libddp/bootstrap/device_choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/core/error.h"

namespace ddp {
namespace {

std::string describe(const Peer& peer) {
  return concat("rank ", peer.rank, " (", peer.host, ", pid ", peer.pid, ")");
}

}  // namespace

int choose_device(int rank, int local_rank, int local_size,
                  const std::vector<DeviceView>& node) {
  const auto self =
      std::find_if(node.begin(), node.end(),
                   [&](const DeviceView& view) { return view.rank == rank; });
  DDP_EXPECT(self != node.end(), InvalidArgument, "rank ", rank,
             " is not among the ranks of its node");
  const auto visible = static_cast<int>(self->bus_ids.size());
  if (visible == 1) return 0;
  if (visible >= local_size) return local_rank;
  const auto position = static_cast<int>(std::count_if(
      node.begin(), self,
      [&](const DeviceView& other) { return other.bus_ids == self->bus_ids; }));
  DDP_EXPECT(position < visible, InvalidArgument, "rank ", rank, " is number ",
             position, " of the ranks that share ", visible,
             " visible GPUs on its node of ", local_size,
             " ranks; give each rank a GPU (srun: --ntasks-per-node=N "
             "--gres=gpu:N or --gpu-bind=none; torchrun: --nproc-per-node=",
             visible,
             "), check CUDA_VISIBLE_DEVICES, or ask for device "
             "\"cpu\"");
  return position;
}

void check_distinct_devices(const std::vector<Peer>& peers,
                            const std::vector<std::string>& machines) {
  std::map<std::pair<std::string, std::string>, const Peer*> owners;
  for (const auto& peer : peers) {
    if (peer.bus_id.empty()) continue;
    const auto& machine = machines.at(static_cast<std::size_t>(peer.rank));
    const auto [found, is_new] =
        owners.try_emplace({machine, peer.bus_id}, &peer);
    DDP_EXPECT(is_new, InvalidArgument, describe(*found->second), " and ",
               describe(peer), " both use the GPU ", peer.bus_id,
               "; each rank needs a GPU of its own: check "
               "CUDA_VISIBLE_DEVICES and the launcher's GPU options (srun: "
               "--ntasks-per-node=N --gres=gpu:N or --gpu-bind=none)");
  }
}

void check_equal_device_types(const std::vector<Peer>& peers) {
  const auto other =
      std::find_if(peers.begin(), peers.end(), [&](const Peer& peer) {
        return peer.device.type != peers.front().device.type;
      });
  DDP_EXPECT(other == peers.end(), InvalidArgument, describe(peers.front()),
             " is on ", name(peers.front().device), " but ", describe(*other),
             " is on ", name(other->device),
             "; make a GPU visible to every rank or ask for device \"cpu\" on "
             "all");
}

}  // namespace ddp
