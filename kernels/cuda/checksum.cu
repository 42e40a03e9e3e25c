#include "kernels/cuda/launch.cuh"
#include "kernels/formula/checksum.h"
#include "kernels/twins.h"

namespace ddp::cuda {
namespace {

/// Bytes [index * 8, index * 8 + 8) of the data, zeros behind its end.
__device__ std::uint64_t word_at(const unsigned char* data, std::int64_t bytes,
                                 std::int64_t index) {
  std::uint64_t word = 0;
  const std::int64_t begin = index * 8;
  for (int i = 0; i < 8 && begin + i < bytes; ++i)
    word |= static_cast<std::uint64_t>(data[begin + i]) << (8 * i);
  return word;
}

__device__ std::uint64_t sum_block(std::uint64_t value) {
  __shared__ std::uint64_t warps[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_down_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int warp = 1; warp < kThreads / 32; ++warp) value += warps[warp];
  return value;
}

/// `pairs` of words are read 16 bytes at a time; the rest byte by byte.
__global__ void __launch_bounds__(kThreads)
    checksum_kernel(const unsigned char* data, std::int64_t bytes,
                    std::int64_t pairs, std::uint64_t seed,
                    unsigned long long* result) {
  const std::int64_t thread = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  const std::int64_t threads = std::int64_t{kThreads} * gridDim.x;
  std::uint64_t sum = thread == 0 ? formula::checksum_start(bytes, seed) : 0;
#pragma unroll 4
  for (std::int64_t i = thread; i < pairs; i += threads) {
    const ulonglong2 pair = reinterpret_cast<const ulonglong2*>(data)[i];
    sum += formula::checksum_term(pair.x, 2 * i, seed);
    sum += formula::checksum_term(pair.y, 2 * i + 1, seed);
  }
  const std::int64_t words = (bytes + 7) / 8;
  for (std::int64_t i = 2 * pairs + thread; i < words; i += threads)
    sum += formula::checksum_term(word_at(data, bytes, i), i, seed);
  sum = sum_block(sum);
  // Sums modulo 2^64 do not depend on the order of the blocks.
  if (threadIdx.x == 0) atomicAdd(result, static_cast<unsigned long long>(sum));
}

}  // namespace

void checksum(TensorView tensor, std::uint64_t seed, std::uint64_t* result,
              StreamView stream) {
  const CurrentDevice current(stream.device);
  DDP_CUDA(cudaMemsetAsync(result, 0, sizeof *result, handle(stream)));
  const auto bytes = static_cast<std::int64_t>(tensor.bytes());
  const bool aligned = reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
  static Residency residency;
  const unsigned grid =
      grid_of(bytes / (16 * kThreads) + 1,
              residency.blocks(&checksum_kernel, stream.device));
  checksum_kernel<<<grid, kThreads, 0, handle(stream)>>>(
      tensor.as<unsigned char>(), bytes, aligned ? bytes / 16 : 0, seed,
      reinterpret_cast<unsigned long long*>(result));
  DDP_CUDA_LAUNCHED();
}

}  // namespace ddp::cuda
