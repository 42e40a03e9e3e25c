/// \file
/// The walk of an optimizer over an UpdateTable; adam.cu and sgd.cu say what
/// is done to one element.
///
/// Blocks stride over chunks. A thread keeps kUnroll vectors of each stream
/// in flight; for AdamW in fp32 that is 8 loads of 16 bytes, more than HBM
/// needs from all resident threads.
#pragma once

#include <span>

#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/table.cuh"
#include "kernels/step_vote.h"

namespace ddp::cuda {

inline constexpr int kUnroll = 2;

/// All that a launch needs; passed by value, so nothing is uploaded.
template <typename Values>
struct UpdateArguments {
  const UpdateRun* runs;
  const Chunk* chunks;
  std::int64_t chunk_begin, chunk_end;
  const StepControl* control;
  const std::int32_t* used;
  const std::int64_t* time;
  std::int32_t first_group;
  Values groups[kGroupsPerLaunch];
};

/// One element position of every stream of a run.
template <typename Rule, typename W, typename G, int kCount>
struct Elements {
  using S = formula::Wide<W>;
  Pack<S, kCount> w, m, v, g;

  __device__ void read(const UpdateRun& run, std::int64_t i, bool uses1) {
    if (run.master != nullptr) {
      w = load<kCount>(static_cast<const S*>(run.master) + i);
    } else {
      w = widen<S>(load<kCount>(static_cast<const W*>(run.weight.data[0]) + i));
    }
    if (uses1) m = load<kCount>(static_cast<const S*>(run.moment1) + i);
    if constexpr (Rule::kHasMoment2)
      v = load<kCount>(static_cast<const S*>(run.moment2) + i);
    const auto sum = load_sum<kCount, G>(run.gradient, i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) g.at[j] = static_cast<S>(sum.at[j]);
  }

  __device__ void write(const UpdateRun& run, std::int64_t i, bool uses1) {
    if (run.master != nullptr) store(static_cast<S*>(run.master) + i, w);
    if (uses1) store(static_cast<S*>(run.moment1) + i, m);
    if constexpr (Rule::kHasMoment2) store(static_cast<S*>(run.moment2) + i, v);
    const Pack<W, kCount> rounded = narrow<W>(w);
    for (int d = 0; d < run.weight.count; ++d)
      store(static_cast<W*>(run.weight.data[d]) + i, rounded);
  }
};

template <typename Rule, typename W, typename G>
__device__ void update_chunk(
    const UpdateRun& run, const Chunk& chunk, formula::Wide<W> scale,
    bool uses1,
    const typename Rule::template Coefficients<formula::Wide<W>>& c) {
  constexpr int kWidth = kVectorElements;
  const std::int32_t stride = kThreads * kWidth;
  const std::int32_t vectors = (chunk.count - chunk.head) / kWidth * kWidth;
  for (std::int32_t i = threadIdx.x * kWidth; i < vectors;
       i += stride * kUnroll) {
    Elements<Rule, W, G, kWidth> e[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (i + u * stride < vectors)
        e[u].read(run, chunk.begin + chunk.head + i + u * stride, uses1);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (i + u * stride < vectors) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
          Rule::apply(e[u].w.at[j], e[u].m.at[j], e[u].v.at[j],
                      e[u].g.at[j] * scale, uses1, c);
        e[u].write(run, chunk.begin + chunk.head + i + u * stride, uses1);
      }
  }
  for_edges(chunk.head, chunk.count, [&](auto, std::int32_t i) {
    Elements<Rule, W, G, 1> e;
    e.read(run, chunk.begin + i, uses1);
    Rule::apply(e.w.at[0], e.m.at[0], e.v.at[0], e.g.at[0] * scale, uses1, c);
    e.write(run, chunk.begin + i, uses1);
  });
}

template <typename Rule, typename W, typename G>
__global__ void __launch_bounds__(kThreads, 3) update_kernel(
    const __grid_constant__ UpdateArguments<typename Rule::Values> a) {
  using S = formula::Wide<W>;
  if (a.control->apply == 0) return;
  const S scale = static_cast<S>(a.control->gradient_scale);
  __shared__ typename Rule::template Coefficients<S> c;
  __shared__ bool uses1;
  std::int32_t known_group = -1;
  std::int32_t known_clock = -1;
  for (std::int64_t k = a.chunk_begin + blockIdx.x; k < a.chunk_end;
       k += gridDim.x) {
    const Chunk chunk = a.chunks[k];
    const UpdateRun& run = a.runs[chunk.run];
    if (run.clock >= 0 && a.used[run.clock] == 0) continue;
    if (run.group != known_group || run.clock != known_clock) {
      known_group = run.group;
      known_clock = run.clock;
      __syncthreads();  // nobody still reads the former coefficients
      if (threadIdx.x == 0) {
        const auto& values = a.groups[run.group - a.first_group];
        c = Rule::template coefficients<S>(
            values, run.clock < 0 ? a.control->time : a.time[run.clock]);
        uses1 = Rule::uses_moment1(values);
      }
      __syncthreads();
    }
    update_chunk<Rule, W, G>(run, chunk, scale, uses1, c);
  }
}

template <typename Rule, typename W, typename G>
void launch_update(const UpdateArguments<typename Rule::Values>& arguments,
                   StreamView stream) {
  static Residency residency;
  auto* kernel = &update_kernel<Rule, W, G>;
  const unsigned grid = grid_of(arguments.chunk_end - arguments.chunk_begin,
                                residency.blocks(kernel, stream.device));
  kernel<<<grid, kThreads, 0, handle(stream)>>>(arguments);
  DDP_CUDA_LAUNCHED();
}

/// One launch for every kGroupsPerLaunch groups.
template <typename Rule>
void update(const UpdateTable& table,
            std::span<const typename Rule::Values> groups,
            const StepControl* control, const ParameterClocks& clocks,
            StreamView stream) {
  const CurrentDevice current(stream.device);
  const CudaTable& device = device_table(table);
  for (const ChunkBatch& batch : table.prepared()->list.batches) {
    UpdateArguments<typename Rule::Values> a{
        device.runs(), device.chunks(), batch.begin, batch.end, control,
        clocks.used,   clocks.time,     batch.first_group};
    const auto first = static_cast<std::size_t>(batch.first_group);
    const std::size_t count =
        std::min<std::size_t>(kGroupsPerLaunch, groups.size() - first);
    std::copy_n(groups.begin() + batch.first_group, count, a.groups);
    with_types(table.weight_dtype(), table.gradient_dtype(),
               [&](auto weight, auto gradient) {
                 launch_update<Rule, typename decltype(weight)::type,
                               typename decltype(gradient)::type>(a, stream);
               });
  }
}

}  // namespace ddp::cuda
