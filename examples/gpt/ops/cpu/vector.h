/// \file
/// Vec: a register of floats, its loads and its exponential.
///
/// The kernels of this folder are compiled once per instruction set, each time
/// in a namespace of its own (GPT_ISA), and dispatch.cpp picks one at run time.
/// So nothing here may have a name that two of them share: no inline function
/// of the standard library, everything static in the namespace.
#pragma once

#include <cstdint>

#ifndef GPT_ISA
#define GPT_ISA baseline
#endif
#define GPT_INLINE static inline __attribute__((always_inline))

namespace gpt::GPT_ISA {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef std::int32_t VecInt __attribute__((vector_size(kLanes * 4)));

/// How many lanes of a Vec one chunk of an array fills: all, or some at its
/// end.
struct Full {};
struct Part {
  std::int64_t count;
};

GPT_INLINE Vec splat(float value) { return Vec{} + value; }

GPT_INLINE Vec load(const float* p, Full = {}) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
/// Lanes past the count are 0.
GPT_INLINE Vec load(const float* p, Part part) {
  Vec v = {};
  for (std::int64_t i = 0; i < part.count; ++i) v[i] = p[i];
  return v;
}
GPT_INLINE void store(float* p, Vec v, Full = {}) {
  __builtin_memcpy(p, &v, sizeof v);
}
GPT_INLINE void store(float* p, Vec v, Part part) {
  for (std::int64_t i = 0; i < part.count; ++i) p[i] = v[i];
}

/// Calls body(index, Full or Part) for the chunks of `count` elements.
template <typename Body>
GPT_INLINE void for_chunks(std::int64_t count, Body body) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, Full{});
  if (i < count) body(i, Part{count - i});
}

/// 0, 1, 2, ...
GPT_INLINE VecInt lane_numbers() {
  VecInt v;
  for (int i = 0; i < kLanes; ++i) v[i] = i;
  return v;
}

GPT_INLINE float sum(Vec v) {
  float total = 0;
  for (int i = 0; i < kLanes; ++i) total += v[i];
  return total;
}
GPT_INLINE Vec max(Vec a, Vec b) { return a > b ? a : b; }
GPT_INLINE Vec min(Vec a, Vec b) { return a < b ? a : b; }

/// e^x, relative error below 3e-7. Below -87 it gives e^-87 (1.6e-38), above
/// 88 e^88: no infinity arises, and NaN stays NaN.
GPT_INLINE Vec exp(Vec x) {
  // x = n ln 2 + r. Adding 1.5 * 2^23 rounds to an integer that then lies in
  // the low bits of the sum; ln 2 is split so that n ln2_high is exact.
  const Vec clamped = x < -87.0f ? splat(-87.0f) : (x > 88.0f ? splat(88.0f) : x);
  const Vec shifted = clamped * 1.44269504088896341f + 12582912.0f;
  const Vec n = shifted - 12582912.0f;
  const Vec r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  // Minimax polynomial of Cephes' expf on |r| <= ln 2 / 2.
  Vec p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const Vec value = p * (r * r) + r + 1.0f;
  const VecInt scale = (reinterpret_cast<VecInt>(shifted) << 23) + 0x3f800000;
  return value * reinterpret_cast<Vec>(scale);
}

}  // namespace gpt::GPT_ISA
