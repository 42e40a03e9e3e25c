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

/// Vectors per stream and thread; one of fp64 is as long as two of fp32.
template <typename S>
inline constexpr int kUnroll = sizeof(S) == sizeof(float) ? 2 : 1;

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

/// The streams of one run. Copied out of the table first: a store could
/// change the table for all the compiler knows, so it would read addresses
/// again before each load.
template <typename W, typename G>
struct Streams {
  using S = formula::Wide<W>;
  S* master;
  S* moment1;
  S* moment2;
  W* weight;
  const G* gradient;
  std::int32_t sources, destinations;
  const UpdateRun* run;  ///< for the addresses of further peers
  bool uses1;

  __device__ Streams(const UpdateRun& from, std::int64_t begin, bool uses)
      : master(at(static_cast<S*>(from.master), begin)),
        moment1(at(static_cast<S*>(from.moment1), begin)),
        moment2(at(static_cast<S*>(from.moment2), begin)),
        weight(static_cast<W*>(from.weight.data[0]) + begin),
        gradient(static_cast<const G*>(from.gradient.data[0]) + begin),
        sources(from.gradient.count),
        destinations(from.weight.count),
        run(&from),
        uses1(uses) {}

  __device__ static S* at(S* base, std::int64_t begin) {
    return base == nullptr ? nullptr : base + begin;
  }
};

/// One element position of every stream.
template <typename Rule, typename W, typename G, int kCount>
struct Elements {
  using S = formula::Wide<W>;
  using Sum = formula::Wide<G>;
  Pack<S, kCount> w, m, v, g;

  /// `i` counts from the chunk's begin.
  __device__ void read(const Streams<W, G>& s, std::int64_t begin,
                       std::int32_t i) {
    if (s.master != nullptr) {
      w = load<kCount>(s.master + i);
    } else {
      w = widen<S>(load<kCount>(s.weight + i));
    }
    if (s.uses1) m = load<kCount>(s.moment1 + i);
    if constexpr (Rule::kHasMoment2) v = load<kCount>(s.moment2 + i);
    Pack<Sum, kCount> sum = widen<Sum>(load<kCount>(s.gradient + i));
    for (int k = 1; k < s.sources; ++k) {
      const G* more = static_cast<const G*>(s.run->gradient.data[k]);
      add(sum, widen<Sum>(load<kCount>(more + begin + i)));
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j) g.at[j] = static_cast<S>(sum.at[j]);
  }

  __device__ void write(const Streams<W, G>& s, std::int64_t begin,
                        std::int32_t i) {
    if (s.master != nullptr) store(s.master + i, w);
    if (s.uses1) store(s.moment1 + i, m);
    if constexpr (Rule::kHasMoment2) store(s.moment2 + i, v);
    const Pack<W, kCount> rounded = narrow<W>(w);
    store(s.weight + i, rounded);
    for (int k = 1; k < s.destinations; ++k)
      store(static_cast<W*>(s.run->weight.data[k]) + begin + i, rounded);
  }
};

template <typename Rule, typename W, typename G>
__device__ void update_chunk(
    const UpdateRun& run, const Chunk& chunk, formula::Wide<W> scale,
    bool uses1,
    const typename Rule::template Coefficients<formula::Wide<W>>& c) {
  constexpr int kWidth = kVectorElements;
  constexpr int kDepth = kUnroll<formula::Wide<W>>;
  constexpr std::int32_t kStride = kThreads * kWidth;
  const Streams<W, G> s(run, chunk.begin, uses1);
  const std::int32_t end =
      chunk.head + (chunk.count - chunk.head) / kWidth * kWidth;
  for (std::int32_t i = chunk.head + threadIdx.x * kWidth; i < end;
       i += kStride * kDepth) {
    Elements<Rule, W, G, kWidth> e[kDepth];
#pragma unroll
    for (int u = 0; u < kDepth; ++u)
      if (i + u * kStride < end) e[u].read(s, chunk.begin, i + u * kStride);
#pragma unroll
    for (int u = 0; u < kDepth; ++u)
      if (i + u * kStride < end) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
          Rule::apply(e[u].w.at[j], e[u].m.at[j], e[u].v.at[j],
                      e[u].g.at[j] * scale, uses1, c);
        e[u].write(s, chunk.begin, i + u * kStride);
      }
  }
  for_edges(chunk.head, chunk.count, [&](auto, std::int32_t i) {
    Elements<Rule, W, G, 1> e;
    e.read(s, chunk.begin, i);
    Rule::apply(e.w.at[0], e.m.at[0], e.v.at[0], e.g.at[0] * scale, uses1, c);
    e.write(s, chunk.begin, i);
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
        device.runs(), device.chunks(), batch.begin, batch.end,
        control,       clocks.used,     clocks.time, batch.first_group};
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
