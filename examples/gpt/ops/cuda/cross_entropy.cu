#include <climits>

#include "examples/gpt/ops/cuda/cross_entropy.h"
#include "examples/gpt/ops/cuda/dispatch.cuh"
#include "examples/gpt/ops/cuda/reduce.cuh"

namespace gpt::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr float kLog2E = 1.4426950408889634f;

/// A maximum and the sum of exp(x - maximum), mergeable in any split
/// (Milakov & Gimelshein 2018).
struct SoftmaxState {
  float maximum = -INFINITY;
  float sum = 0;

  __device__ void rescale(float larger) {
    // Both -inf: nothing was seen yet, and inf - inf would be NaN.
    if (larger > maximum) {
      sum *= exp2f((maximum - larger) * kLog2E);
      maximum = larger;
    }
  }
};

__device__ SoftmaxState block_state(SoftmaxState mine) {
  __shared__ float shared[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float warp_maximum = warp_max(mine.maximum);
  if (lane == 0) shared[warp] = warp_maximum;
  __syncthreads();
  const float maximum = warp_max(shared[lane]);
  __syncthreads();
  mine.rescale(maximum);
  const float warp_total = warp_sum(mine.sum);
  if (lane == 0) shared[warp] = warp_total;
  __syncthreads();
  mine.sum = warp_sum(shared[lane]);
  mine.maximum = maximum;
  return mine;
}

/// A block a row. With kStaged the row is kept in shared memory between the
/// two passes, so that it crosses the bus once each way; each thread reads
/// back only what it wrote itself.
template <typename T, int V, bool kStaged>
__global__ void __launch_bounds__(kThreads, 2)
    cross_entropy_kernel(float* losses, T* logits, const std::int32_t* targets,
                         std::int64_t vocabulary, std::int64_t padded,
                         float scale, bool want_gradient) {
  extern __shared__ uint4 memory[];
  T* const staged = reinterpret_cast<T*>(memory);
  T* const row = logits + blockIdx.x * padded;
  const std::int32_t target = targets[blockIdx.x];
  const int columns = static_cast<int>(vocabulary);
  const int padded_columns = static_cast<int>(padded);
  if (target < 0) {
    if (threadIdx.x == 0) losses[blockIdx.x] = 0;
    if (!want_gradient) return;
    for (int c = threadIdx.x * V; c < padded_columns; c += kThreads * V)
      store<V>(row + c, Pack<T, V>{});
    return;
  }

  SoftmaxState state;
  for (int c = threadIdx.x * V; c < columns; c += kThreads * V) {
    const Pack<T, V> pack =
        kStaged ? load_streaming<V>(row + c) : load<V>(row + c);
    if constexpr (kStaged) store<V>(staged + c, pack);
    float x[V];
    pack.unpack(x);
    float largest = -INFINITY;
#pragma unroll
    for (int j = 0; j < V; ++j) {
      if (c + j >= columns) x[j] = -INFINITY;
      largest = fmaxf(largest, x[j]);
    }
    state.rescale(largest);
    if (state.maximum == -INFINITY) continue;
#pragma unroll
    for (int j = 0; j < V; ++j)
      state.sum += exp2f((x[j] - state.maximum) * kLog2E);
  }
  state = block_state(state);

  if (threadIdx.x == 0)
    losses[blockIdx.x] =
        logf(state.sum) + state.maximum - load_float(row + target);
  if (!want_gradient) return;
  // The loss read the target's logit, which is overwritten below.
  __syncthreads();
  const float factor = scale / state.sum;
  for (int c = threadIdx.x * V; c < padded_columns; c += kThreads * V) {
    float x[V] = {};
    if (c < columns) load<V>((kStaged ? staged : row) + c).unpack(x);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float share = exp2f((x[j] - state.maximum) * kLog2E) * factor;
      x[j] = c + j < columns ? share - (c + j == target ? scale : 0.0f) : 0;
    }
    Pack<T, V> result;
    result.pack(x);
    store_streaming<V>(row + c, result);
  }
}

}  // namespace

void cross_entropy(const Context& context, const CrossEntropy& args) {
  if (args.rows == 0) return;
  DDP_EXPECT(args.padded_vocabulary <= INT_MAX / 2, InvalidArgument,
             "a vocabulary of ", args.padded_vocabulary,
             " exceeds the limit of ", INT_MAX / 2);
  const std::int64_t staged_bytes =
      args.padded_vocabulary *
      static_cast<std::int64_t>(ddp::size_of(args.logits.dtype));
  with_access(
      args.logits.dtype, args.padded_vocabulary, {args.logits.data},
      [&]<typename T, int V>() {
        const auto launch = [&](auto kernel, int shared) {
          if (shared > 0)
            GPT_CUDA(cudaFuncSetAttribute(
                kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
          kernel<<<static_cast<unsigned>(args.rows), kThreads, shared,
                   context.stream>>>(
              args.losses.as<float>(), args.logits.as<T>(),
              args.targets.as<const std::int32_t>(), args.vocabulary,
              args.padded_vocabulary, args.gradient_scale, args.want_gradient);
        };
        // A kilobyte is left for the block's own and the system's.
        if (args.want_gradient && staged_bytes + 1024 <= context.shared_bytes)
          launch(cross_entropy_kernel<T, V, true>,
                 static_cast<int>(staged_bytes));
        else
          launch(cross_entropy_kernel<T, V, false>, 0);
      });
  GPT_CUDA(cudaGetLastError());
}

}  // namespace gpt::cuda
