/// \file
/// bfloat16 and float16 as storage types, with round-to-nearest-even
/// conversions that give the same bits on host and device.
#pragma once

#include <cstdint>
#include <cstring>

// Always inlined on the host: the CPU twins compile the same functions for
// several instruction sets, and an out-of-line copy of one of them must not
// be what the linker picks for all.
#if defined(__CUDACC__)
#define DDP_HOST_DEVICE __host__ __device__
#elif defined(__GNUC__)
#define DDP_HOST_DEVICE __attribute__((always_inline))
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
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x0040u;
  return {static_cast<std::uint16_t>(
      (bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

// The float16 conversions select between finished values instead of
// branching, so that loops over them vectorise.

DDP_HOST_DEVICE inline float to_float(float16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u)
                             << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffu;
  const std::uint32_t normal = (magnitude << 13) + 0x38000000u;
  const std::uint32_t special = (magnitude << 13) | 0x7f800000u;
  // Zero and subnormal: the value is magnitude * 2^-24, exact in fp32.
  const std::uint32_t small =
      detail::bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) *
                      5.9604644775390625e-8f);
  std::uint32_t bits = magnitude >= 0x0400u ? normal : small;
  bits = magnitude >= 0x7c00u ? special : bits;
  return detail::float_of(sign | bits);
}

/// Rounds to nearest, ties to even; what is too large becomes infinity.
DDP_HOST_DEVICE inline float16 to_float16(float value) {
  const std::uint32_t bits = detail::bits_of(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t normal =
      (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  // Subnormal: adding 0.5 aligns the result's last place with 2^-24, so the
  // hardware's own rounding of the sum is the rounding that is asked for.
  const std::uint32_t small =
      detail::bits_of(detail::float_of(magnitude) + 0.5f) - 0x3f000000u;
  std::uint32_t result = magnitude >= 0x38800000u ? normal : small;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;  // 65520 or more
  result = magnitude > 0x7f800000u ? 0x7e00u : result;   // NaN
  return {static_cast<std::uint16_t>(sign | result)};
}

}  // namespace ddp
