/// \file
/// Which GPU a rank takes: arithmetic on what each rank sees.
#pragma once

#include <string>
#include <vector>

#include "libddp/bootstrap/world.h"

namespace ddp {

/// What one rank of this node sees.
struct DeviceView {
  int rank = 0;
  /// Bus ids of the visible GPUs in the order of their indices.
  std::vector<std::string> bus_ids;
};

/// The index of the GPU for one rank. One visible GPU: that. At least as many
/// as ranks on the node: the local rank. Otherwise, where tasks share sets:
/// the position of `rank` among the ranks of `node` that see the same set.
/// `node` lists the ranks of one machine in rank order, `rank` among them.
/// Throws InvalidArgument that names the launcher's options when the GPUs do
/// not suffice.
int choose_device(int rank, int local_rank, int local_size,
                  const std::vector<DeviceView>& node);

/// Throws InvalidArgument that names both ranks and the bus id when two ranks
/// of one machine have the same GPU. `machines` holds an identity of the
/// machine for each rank; containers of one machine share it.
void check_distinct_devices(const std::vector<Peer>& peers,
                            const std::vector<std::string>& machines);

/// Throws InvalidArgument with one rank of each kind when some ranks are on
/// GPUs and others on the CPU.
void check_equal_device_types(const std::vector<Peer>& peers);

}  // namespace ddp
