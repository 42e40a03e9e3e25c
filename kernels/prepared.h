/// \file
/// UpdateTable::Prepared: what the twins keep beside the list of runs.
#pragma once

#include <memory>
#include <vector>

#include "kernels/chunks.h"
#include "kernels/step_vote.h"
#include "kernels/update_table.h"

namespace ddp {

/// Runs, chunks and scratch in the memory of a GPU.
class DeviceTable {
 public:
  virtual ~DeviceTable() = default;
};

struct UpdateTable::Prepared {
  ChunkList list;
  std::int32_t max_group = -1;  ///< over runs that are not empty
  std::int32_t max_clock = -1;
  bool all_moment1 = true;
  bool all_moment2 = true;
  std::vector<NormPart> parts;          ///< one per chunk, on the CPU
  std::unique_ptr<DeviceTable> device;  ///< null on the CPU
};

namespace cuda {
/// Copies runs and chunks to the GPU; waits for the copy.
std::unique_ptr<DeviceTable> upload(const std::vector<UpdateRun>& runs,
                                    const std::vector<Chunk>& chunks,
                                    Device device);
}  // namespace cuda

}  // namespace ddp
