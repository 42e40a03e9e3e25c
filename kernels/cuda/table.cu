#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/table.cuh"

namespace ddp::cuda {
namespace {

std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

CudaTable::CudaTable(const std::vector<UpdateRun>& runs,
                     const std::vector<Chunk>& chunks, Device device)
    : device_(device) {
  const CurrentDevice current(device);
  const std::size_t run_bytes = runs.size() * sizeof(UpdateRun);
  const std::size_t chunk_bytes = chunks.size() * sizeof(Chunk);
  const std::size_t part_bytes = chunks.size() * sizeof(NormPart);
  DDP_CUDA(cudaMalloc(&memory_, padded(run_bytes) + padded(chunk_bytes) +
                                    padded(part_bytes) + 256));
  char* bytes = static_cast<char*>(memory_);
  runs_ = reinterpret_cast<UpdateRun*>(bytes);
  chunks_ = reinterpret_cast<Chunk*>(bytes + padded(run_bytes));
  parts_ = reinterpret_cast<NormPart*>(bytes + padded(run_bytes) +
                                       padded(chunk_bytes));
  if (chunks.empty()) return;
  cudaError_t error =
      cudaMemcpy(runs_, runs.data(), run_bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess)
    error =
        cudaMemcpy(chunks_, chunks.data(), chunk_bytes, cudaMemcpyHostToDevice);
  // A pageable copy may return before the data has arrived; passes run on
  // streams that do not wait for it.
  if (error == cudaSuccess) error = cudaStreamSynchronize(nullptr);
  if (error != cudaSuccess) {
    static_cast<void>(cudaFree(memory_));
    detail::throw_cuda(error, "copy of an UpdateTable to the GPU", __FILE__,
                       __LINE__);
  }
}

CudaTable::~CudaTable() {
  // Waits for the kernels that still read the table.
  static_cast<void>(cudaFree(memory_));
}

std::unique_ptr<DeviceTable> upload(const std::vector<UpdateRun>& runs,
                                    const std::vector<Chunk>& chunks,
                                    Device device) {
  return std::make_unique<CudaTable>(runs, chunks, device);
}

}  // namespace ddp::cuda
