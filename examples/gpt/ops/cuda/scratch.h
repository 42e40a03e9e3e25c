/// \file
/// What every operation needs: the stream, the size of the GPU, and memory
/// for intermediate values.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/core/tensor.h"
#include "libddp/device/buffer.h"

namespace gpt::cuda {

/// Memory that one operation uses between its kernels. The next operation on
/// the stream gets the same memory, so nothing in it survives. It grows at
/// first use, waiting for the stream then, and never in later steps.
class Scratch {
 public:
  explicit Scratch(ddp::StreamView stream) : stream_(stream) {}
  /// At least `bytes`, starting on a multiple of 256.
  void* get(std::size_t bytes);
  template <typename T>
  T* get(std::size_t count) {
    return static_cast<T*>(get(count * sizeof(T)));
  }

 private:
  ddp::StreamView stream_;
  ddp::Buffer buffer_;
};

/// Passed to every launcher; owned by the CudaOps.
struct Context {
  explicit Context(ddp::StreamView view);

  cudaStream_t stream = nullptr;
  ddp::Device device;
  int multiprocessors = 0;
  /// Bytes of shared memory that one block may opt in to.
  int shared_bytes = 0;
  Scratch scratch;
};

/// `bytes` rounded up so that what follows is aligned for any access.
constexpr std::size_t aligned_bytes(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

}  // namespace gpt::cuda
