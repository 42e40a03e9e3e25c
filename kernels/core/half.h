/// \file
/// bfloat16 and float16 as storage types, with round-to-nearest-even
/// conversions that give the same bits on host and device.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define DDP_HOST_DEVICE __host__ __device__
#else
#define DDP_HOST_DEVICE
#endif

namespace ddp {

/// Sixteen bits: sign, 8 bits of exponent, 7 of fraction.
struct bfloat16 {
  std::uint16_t bits = 0;
};

/// IEEE 754 binary16.
struct float16 {
  std::uint16_t bits = 0;
};

namespace detail {
DDP_HOST_DEVICE inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
DDP_HOST_DEVICE inline float float_of(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
}  // namespace detail

DDP_HOST_DEVICE inline float to_float(float value) { return value; }

DDP_HOST_DEVICE inline float to_float(bfloat16 value) {
  return detail::float_of(static_cast<std::uint32_t>(value.bits) << 16);
}

/// Rounds to nearest, ties to even; NaN stays NaN (quiet), infinity stays.
DDP_HOST_DEVICE inline bfloat16 to_bfloat16(float value) {
  const std::uint32_t bits = detail::bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return {static_cast<std::uint16_t>((bits >> 16) | 0x0040u)};
  return {static_cast<std::uint16_t>(
      (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

DDP_HOST_DEVICE inline float to_float(float16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u)
                             << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00u)  // infinity and NaN
    return detail::float_of(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude >= 0x0400u)  // normal
    return detail::float_of(sign | ((magnitude << 13) + 0x38000000u));
  // Zero and subnormal: the value is magnitude * 2^-24, exact in fp32.
  const float small = static_cast<float>(magnitude) * 5.9604644775390625e-8f;
  return detail::float_of(sign | detail::bits_of(small));
}

/// Rounds to nearest, ties to even; what is too large becomes infinity.
DDP_HOST_DEVICE inline float16 to_float16(float value) {
  const std::uint32_t bits = detail::bits_of(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u)  // rounds to 65536 or more
    return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (magnitude >= 0x38800000u) {  // normal
    const std::uint32_t rounded =
        magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u;
    return {static_cast<std::uint16_t>(sign | (rounded >> 13))};
  }
  // Subnormal: adding 0.5 aligns the result's last place with 2^-24, so the
  // hardware's own rounding of the sum is the rounding that is asked for.
  const float aligned = detail::float_of(magnitude) + 0.5f;
  return {static_cast<std::uint16_t>(
      sign | (detail::bits_of(aligned) - 0x3f000000u))};
}

}  // namespace ddp
