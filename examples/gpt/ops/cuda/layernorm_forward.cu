#include <algorithm>

#include "examples/gpt/ops/cuda/layernorm.h"
#include "examples/gpt/ops/cuda/reduce.cuh"
#include "examples/gpt/ops/cuda/row_groups.cuh"

namespace gpt::cuda {
namespace {

constexpr float kEpsilon = 1e-5f;

template <typename T>
struct Pointers {
  T* out;
  float* mean;
  float* rstd;
  T* residual;
  const T* a;
  const T* b;
  const T* weight;
  const T* bias;
  std::int64_t rows;
  int width;
};

/// Loads the thread's part of `row`, adds `b` and stores the sum if asked.
/// Statistics are those of the stored (rounded) sum, which backward sees.
template <typename T, int V, int N, int G, bool kResidual>
__device__ void load_row(const Pointers<T>& p, const RowGroup<V, N, G>& place,
                         std::int64_t row, float (&x)[N][V]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const int c = place.column(n);
    if (c >= p.width) {
#pragma unroll
      for (int j = 0; j < V; ++j) x[n][j] = 0;
      continue;
    }
    const std::int64_t i = row * p.width + c;
    load<V>(p.a + i).unpack(x[n]);
    if constexpr (kResidual) {
      float y[V];
      load<V>(p.b + i).unpack(y);
#pragma unroll
      for (int j = 0; j < V; ++j) x[n][j] += y[j];
      Pack<T, V> sum;
      sum.pack(x[n]);
      store<V>(p.residual + i, sum);
      sum.unpack(x[n]);
    }
  }
}

template <typename T, int V, int N, int G, bool kResidual>
__global__ void __launch_bounds__(kRowThreads)
    forward_kernel(const Pointers<T> p) {
  __shared__ float shared[kRowThreads / 32];
  const RowGroup<V, N, G> place;
  Pack<T, V> weight[N] = {}, bias[N] = {};
#pragma unroll
  for (int n = 0; n < N; ++n) {
    if (place.column(n) >= p.width) continue;
    weight[n] = load<V>(p.weight + place.column(n));
    bias[n] = load<V>(p.bias + place.column(n));
  }
  constexpr int kGroups = RowGroup<V, N, G>::kGroups;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kGroups;
  // All groups of a block take part in every round, for group_sum's sake.
  for (std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * kGroups;
       base < p.rows; base += step) {
    const std::int64_t row = base + place.group;
    const bool active = row < p.rows;
    float x[N][V] = {};
    if (active) load_row<T, V, N, G, kResidual>(p, place, row, x);
    float sum = 0;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int j = 0; j < V; ++j) sum += x[n][j];
    const float mean = group_sum<G>(sum, shared) / p.width;
    float squares = 0;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (place.column(n) >= p.width) continue;
#pragma unroll
      for (int j = 0; j < V; ++j)
        squares += (x[n][j] - mean) * (x[n][j] - mean);
    }
    const float rstd =
        rsqrtf(group_sum<G>(squares, shared) / p.width + kEpsilon);
    if (!active) continue;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (place.column(n) >= p.width) continue;
      float w[V], b[V];
      weight[n].unpack(w);
      bias[n].unpack(b);
#pragma unroll
      for (int j = 0; j < V; ++j)
        x[n][j] = (x[n][j] - mean) * rstd * w[j] + b[j];
      Pack<T, V> result;
      result.pack(x[n]);
      store<V>(p.out + row * p.width + place.column(n), result);
    }
    if (place.lane == 0) {
      p.mean[row] = mean;
      p.rstd[row] = rstd;
    }
  }
}

template <typename T, int V, bool kResidual>
void launch(const Context& context, const LayernormForward& args) {
  const Pointers<T> pointers{args.out.as<T>(),
                             args.mean.as<float>(),
                             args.rstd.as<float>(),
                             args.residual.as<T>(),
                             args.a.as<const T>(),
                             args.b.as<const T>(),
                             args.weight.as<const T>(),
                             args.bias.as<const T>(),
                             args.rows,
                             static_cast<int>(args.width)};
  with_row_shape(ceil_div(args.width, V), args.width, [&]<int N, int G>() {
    // About 2048 threads fit on a multiprocessor.
    const std::int64_t blocks =
        std::min<std::int64_t>(ceil_div(args.rows, RowGroup<V, N, G>::kGroups),
                               context.multiprocessors * 8);
    forward_kernel<T, V, N, G, kResidual>
        <<<static_cast<unsigned>(blocks), kRowThreads, 0, context.stream>>>(
            pointers);
  });
  GPT_CUDA(cudaGetLastError());
}

}  // namespace

void layernorm_forward(const Context& context, const LayernormForward& args) {
  if (args.rows == 0) return;
  with_access(args.out.dtype, args.width,
              {args.out.data, args.residual.data, args.a.data, args.b.data,
               args.weight.data, args.bias.data},
              [&]<typename T, int V>() {
                if (args.residual.data)
                  launch<T, V, true>(context, args);
                else
                  launch<T, V, false>(context, args);
              });
}

}  // namespace gpt::cuda
