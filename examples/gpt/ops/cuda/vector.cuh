/// \file
/// Pack: V neighbouring elements that move as one access of up to 16 bytes.
///
/// Kernels are written for <T, V> and instantiated for the widest access and
/// for single elements, which serve odd widths and unaligned memory.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <initializer_list>

#include "kernels/core/tensor.h"

namespace gpt::cuda {

using bf16 = __nv_bfloat16;

/// Elements of T in 16 bytes.
template <typename T>
inline constexpr int kWide = 16 / sizeof(T);

namespace detail {
template <int kBytes>
struct RawOf;
template <>
struct RawOf<16> {
  using type = uint4;
};
template <>
struct RawOf<4> {
  using type = std::uint32_t;
};
template <>
struct RawOf<2> {
  using type = std::uint16_t;
};
}  // namespace detail

template <typename T, int V>
struct Pack {
  using Raw = typename detail::RawOf<sizeof(T) * V>::type;
  Raw raw;

  /// The same bits as fp32 values.
  __device__ void unpack(float (&values)[V]) const;
  /// Rounds to nearest even.
  __device__ void pack(const float (&values)[V]);
};

template <>
__device__ inline void Pack<float, 1>::unpack(float (&values)[1]) const {
  values[0] = __uint_as_float(raw);
}
template <>
__device__ inline void Pack<float, 1>::pack(const float (&values)[1]) {
  raw = __float_as_uint(values[0]);
}
template <>
__device__ inline void Pack<float, 4>::unpack(float (&values)[4]) const {
  values[0] = __uint_as_float(raw.x);
  values[1] = __uint_as_float(raw.y);
  values[2] = __uint_as_float(raw.z);
  values[3] = __uint_as_float(raw.w);
}
template <>
__device__ inline void Pack<float, 4>::pack(const float (&values)[4]) {
  raw = make_uint4(__float_as_uint(values[0]), __float_as_uint(values[1]),
                   __float_as_uint(values[2]), __float_as_uint(values[3]));
}
template <>
__device__ inline void Pack<bf16, 1>::unpack(float (&values)[1]) const {
  values[0] = __uint_as_float(static_cast<std::uint32_t>(raw) << 16);
}
template <>
__device__ inline void Pack<bf16, 1>::pack(const float (&values)[1]) {
  raw = __bfloat16_as_ushort(__float2bfloat16_rn(values[0]));
}

/// Two floats as two bf16, `low` in the lower half.
__device__ inline std::uint32_t pack_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  std::uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

template <>
__device__ inline void Pack<bf16, 8>::unpack(float (&values)[8]) const {
  const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(words[i] << 16);
    values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}
template <>
__device__ inline void Pack<bf16, 8>::pack(const float (&values)[8]) {
  raw = make_uint4(
      pack_pair(values[0], values[1]), pack_pair(values[2], values[3]),
      pack_pair(values[4], values[5]), pack_pair(values[6], values[7]));
}

template <int V, typename T>
__device__ inline Pack<T, V> load(const T* from) {
  return {*reinterpret_cast<const typename Pack<T, V>::Raw*>(from)};
}
/// A load of what nobody reads again soon.
template <int V, typename T>
__device__ inline Pack<T, V> load_streaming(const T* from) {
  return {__ldcs(reinterpret_cast<const typename Pack<T, V>::Raw*>(from))};
}
template <int V, typename T>
__device__ inline void store(T* to, const Pack<T, V>& pack) {
  *reinterpret_cast<typename Pack<T, V>::Raw*>(to) = pack.raw;
}
template <int V, typename T>
__device__ inline void store_streaming(T* to, const Pack<T, V>& pack) {
  __stcs(reinterpret_cast<typename Pack<T, V>::Raw*>(to), pack.raw);
}

template <typename T>
__device__ inline float load_float(const T* from) {
  return static_cast<float>(*from);
}
template <typename T>
__device__ inline void store_float(T* to, float value) {
  *to = static_cast<T>(value);
}

/// Whether rows of `width` elements at all of `pointers` allow 16 bytes.
template <typename T>
bool allows_wide(std::int64_t width,
                 std::initializer_list<const void*> pointers) {
  bool aligned = width % kWide<T> == 0;
  for (const void* pointer : pointers)
    aligned = aligned && reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
  return aligned;
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// A pointer of either gradient dtype: reads and writes fp32.
struct GradientPointer {
  void* data;
  bool is_bf16;
  bool accumulate;

  /// Overwrites or adds `value` to element `i`.
  __device__ void put(std::int64_t i, float value) const {
    if (is_bf16) {
      bf16* const p = static_cast<bf16*>(data) + i;
      store_float(p, accumulate ? value + load_float(p) : value);
    } else {
      float* const p = static_cast<float*>(data) + i;
      *p = accumulate ? value + *p : value;
    }
  }

  /// The same for V elements from `first` on, four at a time where fp32
  /// memory is aligned for that (a gradient may start anywhere in a bucket).
  template <int V>
  __device__ void put_pack(std::int64_t first, const float (&values)[V]) const {
    if constexpr (V % 4 == 0) {
      float* const p = static_cast<float*>(data) + first;
      if (!is_bf16 && reinterpret_cast<std::uintptr_t>(p) % 16 == 0) {
#pragma unroll
        for (int i = 0; i < V; i += 4) {
          float old[4] = {}, sum[4];
          if (accumulate) load<4>(p + i).unpack(old);
#pragma unroll
          for (int j = 0; j < 4; ++j) sum[j] = values[i + j] + old[j];
          Pack<float, 4> pack;
          pack.pack(sum);
          store<4>(p + i, pack);
        }
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < V; ++i) put(first + i, values[i]);
  }
};

}  // namespace gpt::cuda
