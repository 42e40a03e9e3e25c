/// \file
/// CudaTable: an UpdateTable's runs, chunks and scratch on the GPU.
#pragma once

#include "kernels/prepared.h"

namespace ddp::cuda {

class CudaTable : public DeviceTable {
 public:
  CudaTable(const std::vector<UpdateRun>& runs,
            const std::vector<Chunk>& chunks, Device device);
  ~CudaTable() override;
  CudaTable(const CudaTable&) = delete;
  CudaTable& operator=(const CudaTable&) = delete;

  const UpdateRun* runs() const noexcept { return runs_; }
  const Chunk* chunks() const noexcept { return chunks_; }
  /// One per chunk: what the first stage of a norm leaves to the second.
  NormPart* parts() const noexcept { return parts_; }

 private:
  Device device_;
  void* memory_ = nullptr;
  UpdateRun* runs_ = nullptr;
  Chunk* chunks_ = nullptr;
  NormPart* parts_ = nullptr;
};

inline const CudaTable& device_table(const UpdateTable& table) {
  return static_cast<const CudaTable&>(*table.prepared()->device);
}

}  // namespace ddp::cuda
