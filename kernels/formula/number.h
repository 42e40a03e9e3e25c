/// \file
/// Numbers as kernels see them: stored in one of four floating types,
/// computed in fp32, or fp64 where an operand is fp64.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/core/half.h"

namespace ddp::formula {

/// fp64 if one of `Ts` is, else fp32.
template <typename... Ts>
using Wide =
    std::conditional_t<(std::is_same_v<Ts, double> || ...), double, float>;

/// The value of a stored element in the type of the arithmetic.
template <typename S, typename T>
DDP_HOST_DEVICE inline S widen(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return static_cast<S>(value);
  } else {
    return static_cast<S>(to_float(value));
  }
}

/// fp32 next to `value`, with a last bit that is odd where it is not exact:
/// rounding that to 16 bits equals rounding `value` once (Boldo & Melquiond
/// 2008, "Emulation of FMA and correctly rounded sums").
DDP_HOST_DEVICE inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  std::uint32_t bits = detail::bits_of(nearest);
  const bool away = (back > value) == (value > 0) && back != value;
  bits -= away ? 1u : 0u;
  const bool inexact = back > value || back < value;  // false for NaN
  return inexact ? detail::float_of(bits | 1u) : nearest;
}

/// `value` rounded once, to nearest even, into the stored type.
template <typename T, typename S>
DDP_HOST_DEVICE inline T narrow(S value) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return static_cast<T>(value);
  } else {
    float single;
    if constexpr (std::is_same_v<S, double>) {
      single = round_to_odd(value);
    } else {
      single = value;
    }
    if constexpr (std::is_same_v<T, bfloat16>) {
      return to_bfloat16(single);
    } else {
      return to_float16(single);
    }
  }
}

DDP_HOST_DEVICE inline bool is_finite(float value) {
  return (detail::bits_of(value) & 0x7f800000u) != 0x7f800000u;
}

DDP_HOST_DEVICE inline bool is_finite(double value) {
  std::uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (bits & 0x7ff0000000000000u) != 0x7ff0000000000000u;
}

DDP_HOST_DEVICE inline float square_root(float value) {
  return __builtin_sqrtf(value);
}
DDP_HOST_DEVICE inline double square_root(double value) {
  return __builtin_sqrt(value);
}

DDP_HOST_DEVICE inline double magnitude(double value) {
  return __builtin_fabs(value);
}

/// base^exponent by squaring: the same bits on host and device, which a
/// library's pow does not promise. Its error, about `exponent` roundings of
/// fp64, is far below fp32's for any count of steps.
DDP_HOST_DEVICE inline double integer_power(double base,
                                            std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace ddp::formula
