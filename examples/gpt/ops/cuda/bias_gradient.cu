#include <algorithm>

#include "examples/gpt/ops/cuda/bias_gradient.h"
#include "examples/gpt/ops/cuda/dispatch.cuh"
#include "examples/gpt/ops/cuda/partials.h"

namespace gpt::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kUnroll = 4;

/// Block: 8 warps; each warp walks rows of a strip of 32 * V columns. Grid
/// (column strips, parts): part p takes rows [p * part_rows, ...), and
/// leaves its sums in partials[p][column].
template <typename T, int V>
__global__ void __launch_bounds__(kWarps * 32)
    partial_kernel(float* partials, const T* dout, std::int64_t rows,
                   std::int64_t columns, std::int64_t part_rows) {
  __shared__ float sums[kWarps][32 * V];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.x) * 32 + lane) * V;
  const std::int64_t first = blockIdx.y * part_rows;
  const std::int64_t end = min(first + part_rows, rows);
  float sum[V] = {};
  if (column < columns) {
    for (std::int64_t row = first + warp; row < end; row += kWarps * kUnroll) {
      Pack<T, V> packs[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (row + u * kWarps < end)
          packs[u] = load<V>(dout + (row + u * kWarps) * columns + column);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (row + u * kWarps >= end) break;
        float x[V];
        packs[u].unpack(x);
#pragma unroll
        for (int j = 0; j < V; ++j) sum[j] += x[j];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < V; ++j) sums[warp][j * 32 + lane] = sum[j];
  __syncthreads();
  for (int i = threadIdx.x; i < 32 * V; i += kWarps * 32) {
    const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * 32 * V + i;
    if (c >= columns) break;
    float total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += sums[w][i % V * 32 + i / V];
    partials[blockIdx.y * columns + c] = total;
  }
}

}  // namespace

void bias_gradient(Context& context, const ddp::GradientTarget& bias_grad,
                   ddp::TensorView dout, std::int64_t rows,
                   std::int64_t columns) {
  with_access(dout.dtype, columns, {dout.data}, [&]<typename T, int V>() {
    const std::int64_t strips = ceil_div(columns, 32 * V);
    // Eight blocks fit on a multiprocessor; none with less than 32 rows.
    const std::int64_t wanted =
        std::clamp<std::int64_t>(context.multiprocessors * 8 / strips, 1,
                                 std::max<std::int64_t>(1, rows / 32));
    const std::int64_t part_rows =
        std::max<std::int64_t>(1, ceil_div(rows, wanted));
    const auto parts =
        static_cast<int>(std::max<std::int64_t>(1, ceil_div(rows, part_rows)));
    float* const partials =
        context.scratch.get<float>(static_cast<std::size_t>(parts * columns));
    partial_kernel<T, V>
        <<<dim3(static_cast<unsigned>(strips), static_cast<unsigned>(parts)),
           kWarps * 32, 0, context.stream>>>(partials, dout.as<const T>(), rows,
                                             columns, part_rows);
    GPT_CUDA(cudaGetLastError());
    reduce_partials(context, bias_grad, nullptr, partials, parts, columns);
  });
}

}  // namespace gpt::cuda
