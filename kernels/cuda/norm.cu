// Two stages: a part per chunk, then the sum of the parts by one block. Both
// add in an order that depends on the table alone.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/table.cuh"
#include "kernels/formula/norm.h"
#include "kernels/twins.h"

namespace ddp::cuda {
namespace {

constexpr int kFinalThreads = 1024;
constexpr int kLoads = 4;  ///< vectors that a thread has in flight

/// Joins the values of all threads; the result is thread 0's.
template <NormKind kKind>
__device__ double join_block(double value) {
  __shared__ double warps[32];
  for (int offset = 16; offset > 0; offset /= 2)
    value = formula::norm_join<kKind>(
        value, __shfl_down_sync(0xffffffffu, value, offset));
  __syncthreads();  // an earlier call may still be reading
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int warp = 1; warp < static_cast<int>(blockDim.x) / 32; ++warp)
      value = formula::norm_join<kKind>(value, warps[warp]);
  return value;
}

/// The smallest value of all threads; the result is thread 0's.
__device__ std::int64_t earliest_in_block(std::int64_t value) {
  __shared__ long long least;
  __syncthreads();
  if (threadIdx.x == 0) least = kAllFinite;
  __syncthreads();
  if (value != kAllFinite) atomicMin(&least, static_cast<long long>(value));
  __syncthreads();
  return least;
}

template <NormKind kKind, typename G>
__device__ double chunk_value(const UpdateRun& run, const Chunk& chunk,
                              double power) {
  constexpr int kWidth = kVectorElements;
  using S = formula::Wide<G>;
  const std::int32_t stride = kThreads * kWidth;
  const std::int32_t vectors = (chunk.count - chunk.head) / kWidth * kWidth;
  double sums[kWidth] = {};
  for (std::int32_t i = threadIdx.x * kWidth; i < vectors;
       i += stride * kLoads) {
    Pack<S, kWidth> g[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u)
      if (i + u * stride < vectors)
        g[u] = load_sum<S, kWidth, G>(
            run.gradient, chunk.begin + chunk.head + i + u * stride);
#pragma unroll
    for (int u = 0; u < kLoads; ++u)
      if (i + u * stride < vectors)
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
          sums[j] = formula::norm_join<kKind>(
              sums[j], formula::norm_term<kKind>(
                           static_cast<double>(g[u].at[j]), power));
  }
  for_edges(chunk.head, chunk.count, [&](auto, std::int32_t i) {
    const auto g =
        load_sum<formula::Wide<G>, 1, G>(run.gradient, chunk.begin + i);
    sums[0] = formula::norm_join<kKind>(
        sums[0],
        formula::norm_term<kKind>(static_cast<double>(g.at[0]), power));
  });
  return formula::norm_join<kKind>(formula::norm_join<kKind>(sums[0], sums[1]),
                                   formula::norm_join<kKind>(sums[2], sums[3]));
}

/// Only for a chunk whose part is not finite: its speed does not matter.
template <typename G>
__device__ std::int64_t find_non_finite(const UpdateRun& run,
                                        const Chunk& chunk) {
  std::int64_t first = kAllFinite;
  for (std::int32_t i = threadIdx.x; i < chunk.count; i += blockDim.x) {
    const auto g =
        load_sum<formula::Wide<G>, 1, G>(run.gradient, chunk.begin + i);
    if (!formula::is_finite(g.at[0])) {
      first = run.position + chunk.begin + i;
      break;
    }
  }
  return earliest_in_block(first);
}

/// A finite fp32 sum has a finite fp64 square, so the part itself tells
/// whether an element was not finite; fp64 gradients may overflow instead,
/// and then the search finds nothing.
template <NormKind kKind, typename G>
__global__ void __launch_bounds__(kThreads)
    chunk_kernel(const UpdateRun* runs, const Chunk* chunks, std::int64_t count,
                 double power, NormPart* parts) {
  __shared__ bool finite;
  for (std::int64_t k = blockIdx.x; k < count; k += gridDim.x) {
    const Chunk chunk = chunks[k];
    const UpdateRun& run = runs[chunk.run];
    NormPart part;
    part.value = join_block<kKind>(chunk_value<kKind, G>(run, chunk, power));
    if (threadIdx.x == 0) finite = formula::is_finite(part.value);
    __syncthreads();
    if (!finite) part.first_non_finite = find_non_finite<G>(run, chunk);
    if (threadIdx.x == 0) parts[k] = part;
    __syncthreads();  // before thread 0 writes `finite` again
  }
}

template <NormKind kKind>
__global__ void __launch_bounds__(kFinalThreads)
    join_kernel(const NormPart* parts, std::int64_t count, NormPart* result) {
  NormPart total;
  for (std::int64_t k = threadIdx.x; k < count; k += kFinalThreads) {
    const NormPart part = parts[k];
    total.value = formula::norm_join<kKind>(total.value, part.value);
    total.first_non_finite =
        formula::earlier(total.first_non_finite, part.first_non_finite);
  }
  total.value = join_block<kKind>(total.value);
  total.first_non_finite = earliest_in_block(total.first_non_finite);
  if (threadIdx.x == 0) *result = total;
}

template <NormKind kKind>
void launch_norm(const UpdateTable& table, double power, NormPart* part,
                 StreamView stream) {
  const CudaTable& device = device_table(table);
  const auto count =
      static_cast<std::int64_t>(table.prepared()->list.chunks.size());
  if (count > 0)
    with_type(table.gradient_dtype(), [&](auto gradient) {
      static Residency residency;
      auto* kernel = &chunk_kernel<kKind, typename decltype(gradient)::type>;
      const unsigned grid =
          grid_of(count, residency.blocks(kernel, stream.device));
      kernel<<<grid, kThreads, 0, handle(stream)>>>(
          device.runs(), device.chunks(), count, power, device.parts());
      DDP_CUDA_LAUNCHED();
    });
  join_kernel<kKind>
      <<<1, kFinalThreads, 0, handle(stream)>>>(device.parts(), count, part);
  DDP_CUDA_LAUNCHED();
}

}  // namespace

void norm(const UpdateTable& table, NormKind kind, double power, NormPart* part,
          StreamView stream) {
  const CurrentDevice current(stream.device);
  switch (kind) {
    case NormKind::kTwo:
      return launch_norm<NormKind::kTwo>(table, power, part, stream);
    case NormKind::kInfinity:
      return launch_norm<NormKind::kInfinity>(table, power, part, stream);
    case NormKind::kOne:
      return launch_norm<NormKind::kOne>(table, power, part, stream);
    case NormKind::kPower:
      return launch_norm<NormKind::kPower>(table, power, part, stream);
  }
}

}  // namespace ddp::cuda
