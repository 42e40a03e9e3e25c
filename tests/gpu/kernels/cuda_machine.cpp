// A GPU as the Machine of kernel tests. Without one, every test fails with
// the run-time's own words; these tests only run where a GPU is asked for.
#include <cuda_runtime_api.h>

#include "kernels/core/cuda_check.h"
#include "tests/unit/kernels/machine.h"

namespace ddp::test {
namespace {

class CudaMachine : public Machine {
 public:
  // A stream that does not wait for the default one, as in training.
  CudaMachine() {
    DDP_CUDA(cudaSetDevice(0));
    DDP_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  StreamView stream() const override { return {Device::cuda(0), stream_}; }
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    void* memory = nullptr;
    DDP_CUDA(cudaMalloc(&memory, bytes + 1));
    return {memory, [](void* p) { static_cast<void>(cudaFree(p)); }};
  }
  void write(void* to, const void* from, std::size_t bytes) override {
    copy(to, from, bytes, cudaMemcpyHostToDevice);
  }
  void read(void* to, const void* from, std::size_t bytes) override {
    copy(to, from, bytes, cudaMemcpyDeviceToHost);
  }

 private:
  void copy(void* to, const void* from, std::size_t bytes,
            cudaMemcpyKind kind) {
    DDP_CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream_));
    DDP_CUDA(cudaStreamSynchronize(stream_));
  }

  cudaStream_t stream_ = nullptr;
};

}  // namespace

Machine& machine() {
  static CudaMachine instance;
  return instance;
}

}  // namespace ddp::test
