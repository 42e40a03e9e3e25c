/// \file
/// Packs: one or four neighbouring elements, moved in one or two accesses of
/// up to 16 bytes.
#pragma once

#include "kernels/chunks.h"
#include "kernels/formula/number.h"

namespace ddp::cuda {

template <typename T, int kCount>
struct Pack {
  T at[kCount];
};

/// REQUIRES: for kCount = 4, `from` is aligned to min(16, 4 * sizeof(T)).
template <int kCount, typename T>
__device__ inline Pack<T, kCount> load(const T* from) {
  static_assert(kCount == 1 || kCount == kVectorElements);
  Pack<T, kCount> pack;
  if constexpr (kCount == 1) {
    pack.at[0] = *from;
  } else if constexpr (sizeof(T) == 2) {
    const uint2 raw = *reinterpret_cast<const uint2*>(from);
    pack.at[0].bits = static_cast<std::uint16_t>(raw.x);
    pack.at[1].bits = static_cast<std::uint16_t>(raw.x >> 16);
    pack.at[2].bits = static_cast<std::uint16_t>(raw.y);
    pack.at[3].bits = static_cast<std::uint16_t>(raw.y >> 16);
  } else if constexpr (sizeof(T) == 4) {
    const float4 raw = *reinterpret_cast<const float4*>(from);
    pack.at[0] = raw.x;
    pack.at[1] = raw.y;
    pack.at[2] = raw.z;
    pack.at[3] = raw.w;
  } else {
    const double2 low = reinterpret_cast<const double2*>(from)[0];
    const double2 high = reinterpret_cast<const double2*>(from)[1];
    pack.at[0] = low.x;
    pack.at[1] = low.y;
    pack.at[2] = high.x;
    pack.at[3] = high.y;
  }
  return pack;
}

template <int kCount, typename T>
__device__ inline void store(T* to, const Pack<T, kCount>& pack) {
  if constexpr (kCount == 1) {
    *to = pack.at[0];
  } else if constexpr (sizeof(T) == 2) {
    const auto join = [&](int i) {
      return static_cast<unsigned>(pack.at[i].bits) |
             static_cast<unsigned>(pack.at[i + 1].bits) << 16;
    };
    *reinterpret_cast<uint2*>(to) = make_uint2(join(0), join(2));
  } else if constexpr (sizeof(T) == 4) {
    *reinterpret_cast<float4*>(to) =
        make_float4(pack.at[0], pack.at[1], pack.at[2], pack.at[3]);
  } else {
    reinterpret_cast<double2*>(to)[0] = make_double2(pack.at[0], pack.at[1]);
    reinterpret_cast<double2*>(to)[1] = make_double2(pack.at[2], pack.at[3]);
  }
}

template <typename S, int kCount, typename T>
__device__ inline Pack<S, kCount> widen(const Pack<T, kCount>& pack) {
  Pack<S, kCount> wide;
#pragma unroll
  for (int i = 0; i < kCount; ++i) wide.at[i] = formula::widen<S>(pack.at[i]);
  return wide;
}

template <typename T, int kCount, typename S>
__device__ inline Pack<T, kCount> narrow(const Pack<S, kCount>& pack) {
  Pack<T, kCount> small;
#pragma unroll
  for (int i = 0; i < kCount; ++i) small.at[i] = formula::narrow<T>(pack.at[i]);
  return small;
}

template <typename S, int kCount>
__device__ inline void add(Pack<S, kCount>& sum, const Pack<S, kCount>& more) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum.at[i] += more.at[i];
}

/// Elements at `index` of the sources of G, added in list order in S.
template <typename S, int kCount, typename G>
__device__ inline Pack<S, kCount> load_sum(const PeerList& sources,
                                           std::int64_t index) {
  Pack<S, kCount> sum =
      widen<S>(load<kCount>(static_cast<const G*>(sources.data[0]) + index));
  for (int s = 1; s < sources.count; ++s)
    add(sum,
        widen<S>(load<kCount>(static_cast<const G*>(sources.data[s]) + index)));
  return sum;
}

/// An element count at compile time.
template <int kCount>
struct Count {
  static constexpr int value = kCount;
};

/// Calls body(Count<1>{}, i), shared out over the block, for those i of
/// [0, count) that no vector covers: `head` ones before and a few after.
template <typename Body>
__device__ inline void for_edges(std::int32_t head, std::int32_t count,
                                 const Body& body) {
  const std::int32_t vectors =
      (count - head) / kVectorElements * kVectorElements;
  const std::int32_t singles = count - vectors;
  for (std::int32_t i = threadIdx.x; i < singles; i += blockDim.x)
    body(Count<1>{}, i < head ? i : i + vectors);
}

}  // namespace ddp::cuda
