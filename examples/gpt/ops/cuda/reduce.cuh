/// \file
/// Sums and maxima over the threads of a warp or a block, in fixed order.
#pragma once

#include <cstdint>

namespace gpt::cuda {

__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ inline float warp_max(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

/// Sum over the `kWarps` warps of this thread's group (warps are grouped in
/// order); every thread gets it. `shared` holds a float for each warp of the
/// block. With more than one warp all threads of the block must call.
template <int kWarps>
__device__ inline float group_sum(float value, float* shared) {
  value = warp_sum(value);
  if constexpr (kWarps > 1) {
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) shared[warp] = value;
    __syncthreads();
    const int first = warp / kWarps * kWarps;
    value = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) value += shared[first + i];
    __syncthreads();
  }
  return value;
}

}  // namespace gpt::cuda
