#include <algorithm>

#include "examples/gpt/ops/cuda/layernorm.h"
#include "examples/gpt/ops/cuda/partials.h"
#include "examples/gpt/ops/cuda/reduce.cuh"
#include "examples/gpt/ops/cuda/row_groups.cuh"

namespace gpt::cuda {
namespace {

template <typename T>
struct Pointers {
  T* din;
  float* partials;
  const T* dout;
  const T* in;
  const T* weight;
  const float* mean;
  const float* rstd;
  std::int64_t rows;
  int width;
};

/// Adds the groups' column sums in order into `shared` (width floats) and
/// writes them to `partial`.
template <int V, int N, int G>
__device__ void write_partial(float* partial, float* shared,
                              const RowGroup<V, N, G>& place, int width,
                              const float (&sums)[N][V]) {
  for (int group = 0; group < RowGroup<V, N, G>::kGroups; ++group) {
    __syncthreads();
    if (place.group != group) continue;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const int c = place.column(n);
      if (c >= width) continue;
#pragma unroll
      for (int j = 0; j < V; ++j)
        shared[c + j] = group == 0 ? sums[n][j] : shared[c + j] + sums[n][j];
    }
  }
  __syncthreads();
  for (int c = threadIdx.x; c < width; c += kRowThreads) partial[c] = shared[c];
}

/// With x^ = (x - mean) * rstd and g = dout * weight, a row's gradient is
/// rstd * (g - mean(g) - x^ * mean(g * x^)). A block keeps the sums of
/// dout * x^ and of dout over its rows in registers until its last row.
template <typename T, int V, int N, int G>
__global__ void __launch_bounds__(kRowThreads, N* V <= 24 ? 2 : 1)
    backward_kernel(const Pointers<T> p) {
  extern __shared__ float columns[];
  __shared__ float shared[kRowThreads / 32];
  const RowGroup<V, N, G> place;
  Pack<T, V> weight[N] = {};
#pragma unroll
  for (int n = 0; n < N; ++n)
    if (place.column(n) < p.width)
      weight[n] = load<V>(p.weight + place.column(n));
  float dweight[N][V] = {}, dbias[N][V] = {};
  constexpr int kGroups = RowGroup<V, N, G>::kGroups;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kGroups;
  for (std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * kGroups;
       base < p.rows; base += step) {
    const std::int64_t row = base + place.group;
    const bool active = row < p.rows;
    Pack<T, V> x[N] = {}, dy[N] = {}, dx[N] = {};
    float mean = 0, rstd = 0;
    if (active) {
      const std::int64_t first = row * p.width;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        if (place.column(n) >= p.width) continue;
        x[n] = load_streaming<V>(p.in + first + place.column(n));
        dy[n] = load_streaming<V>(p.dout + first + place.column(n));
        dx[n] = load<V>(p.din + first + place.column(n));
      }
      mean = p.mean[row];
      rstd = p.rstd[row];
    }
    float sum_g = 0, sum_gx = 0;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (place.column(n) >= p.width) continue;
      float xs[V], dys[V], w[V];
      x[n].unpack(xs);
      dy[n].unpack(dys);
      weight[n].unpack(w);
#pragma unroll
      for (int j = 0; j < V; ++j) {
        const float normal = (xs[j] - mean) * rstd;
        const float g = dys[j] * w[j];
        sum_g += g;
        sum_gx += g * normal;
        dweight[n][j] += dys[j] * normal;
        dbias[n][j] += dys[j];
      }
    }
    const float mean_g = group_sum<G>(sum_g, shared) / p.width;
    const float mean_gx = group_sum<G>(sum_gx, shared) / p.width;
    if (!active) continue;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (place.column(n) >= p.width) continue;
      float xs[V], dys[V], w[V], dxs[V];
      x[n].unpack(xs);
      dy[n].unpack(dys);
      weight[n].unpack(w);
      dx[n].unpack(dxs);
#pragma unroll
      for (int j = 0; j < V; ++j) {
        const float normal = (xs[j] - mean) * rstd;
        dxs[j] += (dys[j] * w[j] - mean_g - normal * mean_gx) * rstd;
      }
      dx[n].pack(dxs);
      store<V>(p.din + row * p.width + place.column(n), dx[n]);
    }
  }
  float* const partial =
      p.partials + static_cast<std::int64_t>(blockIdx.x) * 2 * p.width;
  write_partial<V, N, G>(partial, columns, place, p.width, dweight);
  write_partial<V, N, G>(partial + p.width, columns, place, p.width, dbias);
}

}  // namespace

void layernorm_backward(Context& context, const LayernormBackward& args) {
  const std::size_t shared = static_cast<std::size_t>(args.width) * 4;
  with_access(
      args.din.dtype, args.width,
      {args.din.data, args.dout.data, args.in.data, args.weight.data},
      [&]<typename T, int V>() {
        with_row_shape(
            ceil_div(args.width, V), args.width, [&]<int N, int G>() {
              const std::int64_t rounds =
                  ceil_div(args.rows, RowGroup<V, N, G>::kGroups);
              const auto blocks = static_cast<int>(std::clamp<std::int64_t>(
                  rounds, 1, context.multiprocessors * 2));
              float* const partials = context.scratch.get<float>(
                  static_cast<std::size_t>(blocks) * 2 *
                  static_cast<std::size_t>(args.width));
              const Pointers<T> pointers{args.din.as<T>(),
                                         partials,
                                         args.dout.as<const T>(),
                                         args.in.as<const T>(),
                                         args.weight.as<const T>(),
                                         args.mean.as<const float>(),
                                         args.rstd.as<const float>(),
                                         args.rows,
                                         static_cast<int>(args.width)};
              backward_kernel<T, V, N, G>
                  <<<static_cast<unsigned>(blocks), kRowThreads, shared,
                     context.stream>>>(pointers);
              GPT_CUDA(cudaGetLastError());
              reduce_partials(context, args.weight_grad, &args.bias_grad,
                              partials, blocks, args.width);
            });
      });
}

}  // namespace gpt::cuda
