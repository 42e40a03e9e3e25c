#include "benchmarks/kernels/probe.h"

#if defined(DDP_HAS_CUDA)
#include <cuda_runtime_api.h>

#include "kernels/core/cuda_check.h"
#else
#include "kernels/core/error.h"
#endif

namespace ddp::bench {

#if defined(DDP_HAS_CUDA)
namespace {

class CudaProbe : public Probe {
 public:
  CudaProbe() {
    DDP_CUDA(cudaSetDevice(0));
    DDP_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    DDP_CUDA(cudaEventCreate(&begin_));
    DDP_CUDA(cudaEventCreate(&end_));
  }
  ~CudaProbe() override {
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
    static_cast<void>(cudaStreamDestroy(stream_));
  }
  CudaProbe(const CudaProbe&) = delete;
  CudaProbe& operator=(const CudaProbe&) = delete;

  StreamView stream() const override { return {Device::cuda(0), stream_}; }

  std::string machine() const override {
    cudaDeviceProp properties;
    DDP_CUDA(cudaGetDeviceProperties(&properties, 0));
    return properties.name;
  }

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    void* memory = nullptr;
    DDP_CUDA(cudaMalloc(&memory, bytes));
    std::shared_ptr<void> owner(
        memory, [](void* p) { static_cast<void>(cudaFree(p)); });
    DDP_CUDA(cudaMemset(memory, 0, bytes));
    DDP_CUDA(cudaDeviceSynchronize());
    return owner;
  }

  void write(void* to, const void* from, std::size_t bytes) override {
    DDP_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
    DDP_CUDA(cudaStreamSynchronize(stream_));
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    DDP_CUDA(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
  }

  std::vector<double> time(const std::function<void()>& work,
                           int repeat) override {
    for (int i = 0; i < 5; ++i) work();
    std::vector<double> seconds;
    for (int i = 0; i < repeat; ++i) {
      DDP_CUDA(cudaEventRecord(begin_, stream_));
      work();
      DDP_CUDA(cudaEventRecord(end_, stream_));
      DDP_CUDA(cudaEventSynchronize(end_));
      float milliseconds = 0;
      DDP_CUDA(cudaEventElapsedTime(&milliseconds, begin_, end_));
      seconds.push_back(static_cast<double>(milliseconds) / 1e3);
    }
    return seconds;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace

std::unique_ptr<Probe> make_cuda_probe() {
  return std::make_unique<CudaProbe>();
}

#else

std::unique_ptr<Probe> make_cuda_probe() {
  throw Unavailable(
      "bench_kernels: this build has no CUDA; configure with "
      "-DLIBDDP_CUDA=ON, or pass --device cpu");
}

#endif

}  // namespace ddp::bench
