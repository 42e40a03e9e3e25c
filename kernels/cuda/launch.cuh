/// \file
/// How kernels are launched: device, grid, and the check afterwards.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "kernels/core/cuda_check.h"
#include "kernels/core/device.h"

namespace ddp::cuda {

inline constexpr int kThreads = 256;
inline constexpr int kMaxDevices = 64;

/// Makes the stream's device current and restores the former one.
class CurrentDevice {
 public:
  explicit CurrentDevice(Device device) {
    DDP_CUDA(cudaGetDevice(&former_));
    changed_ = former_ != device.index;
    if (changed_) DDP_CUDA(cudaSetDevice(device.index));
  }
  ~CurrentDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(former_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int former_ = 0;
  bool changed_ = false;
};

inline cudaStream_t handle(StreamView stream) {
  return static_cast<cudaStream_t>(stream.handle);
}

/// How many blocks of one kernel a device holds at once: the grid of a kernel
/// whose blocks stride over the work. Asked once per kernel and device.
class Residency {
 public:
  template <typename Kernel>
  int blocks(Kernel* kernel, Device device) {
    const bool cached = device.index >= 0 && device.index < kMaxDevices;
    if (cached) {
      const int known = known_[device.index].load(std::memory_order_relaxed);
      if (known > 0) return known;
    }
    int per_multiprocessor = 0;
    int multiprocessors = 0;
    DDP_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &per_multiprocessor, kernel, kThreads, 0));
    DDP_CUDA(cudaDeviceGetAttribute(
        &multiprocessors, cudaDevAttrMultiProcessorCount, device.index));
    const int count = std::max(1, per_multiprocessor * multiprocessors);
    if (cached) known_[device.index].store(count, std::memory_order_relaxed);
    return count;
  }

 private:
  std::atomic<int> known_[kMaxDevices] = {};
};

inline unsigned grid_of(std::int64_t work, int resident) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(work, 1, resident));
}

}  // namespace ddp::cuda

/// The check that follows each launch.
#define DDP_CUDA_LAUNCHED() DDP_CUDA(cudaGetLastError())
