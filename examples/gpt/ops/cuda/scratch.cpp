#include "examples/gpt/ops/cuda/scratch.h"

#include "examples/gpt/ops/cuda/check.h"

namespace gpt::cuda {

void* Scratch::get(std::size_t bytes) {
  if (bytes > buffer_.bytes()) {
    // The old memory may still be in use by kernels in flight.
    GPT_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_.handle)));
    buffer_ = {};
    buffer_ = ddp::Buffer::allocate(bytes, stream_.device);
  }
  return buffer_.data();
}

Context::Context(ddp::StreamView view)
    : stream(static_cast<cudaStream_t>(view.handle)),
      device(view.device),
      scratch(view) {
  GPT_CUDA(cudaDeviceGetAttribute(
      &multiprocessors, cudaDevAttrMultiProcessorCount, device.index));
  GPT_CUDA(cudaDeviceGetAttribute(
      &shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index));
}

}  // namespace gpt::cuda
