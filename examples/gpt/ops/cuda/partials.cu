#include "examples/gpt/ops/cuda/dispatch.cuh"
#include "examples/gpt/ops/cuda/partials.h"

namespace gpt::cuda {
namespace {

constexpr int kColumns = 32;
constexpr int kLanes = 32;

/// Block (32 columns, 32 lanes); grid (column tiles, targets). Lane y sums
/// partials y, y + 32, ..., then lane 0 sums the lanes in order.
__global__ void __launch_bounds__(kColumns* kLanes)
    reduce_kernel(GradientPointer first, GradientPointer second,
                  const float* partials, int count, std::int64_t width) {
  __shared__ float sums[kLanes][kColumns];
  const std::int64_t column =
      static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  const std::int64_t stride = gridDim.y * width;
  float sum = 0;
  if (column < width) {
    const float* const from = partials + blockIdx.y * width + column;
#pragma unroll 4
    for (int p = threadIdx.y; p < count; p += kLanes) sum += from[p * stride];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
#pragma unroll
  for (int lane = 1; lane < kLanes; ++lane) sum += sums[lane][threadIdx.x];
  (blockIdx.y == 0 ? first : second).put(column, sum);
}

}  // namespace

void reduce_partials(const Context& context, const ddp::GradientTarget& first,
                     const ddp::GradientTarget* second, const float* partials,
                     int count, std::int64_t width) {
  const GradientPointer a = gradient_pointer(first.tensor, first.accumulate);
  const GradientPointer b =
      second ? gradient_pointer(second->tensor, second->accumulate) : a;
  const dim3 blocks(static_cast<unsigned>(ceil_div(width, kColumns)),
                    second ? 2 : 1);
  reduce_kernel<<<blocks, dim3(kColumns, kLanes), 0, context.stream>>>(
      a, b, partials, count, width);
  GPT_CUDA(cudaGetLastError());
}

}  // namespace gpt::cuda
