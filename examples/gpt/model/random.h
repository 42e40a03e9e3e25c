/// \file
/// Random numbers that are a function of their counter.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace gpt {

/// SplitMix64's finaliser (Steele, Lea & Flood 2014): 64 well mixed bits.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Bits of element `counter` of the sequence named by (seed, stream).
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream,
                                    std::uint64_t counter) noexcept {
  return mix(mix(mix(seed) ^ stream) ^ counter);
}

/// Uniform in [0, 1), 53 bits.
constexpr double uniform(std::uint64_t bits) noexcept {
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

/// Standard normal (Box & Muller 1958).
inline double normal(std::uint64_t seed, std::uint64_t stream,
                     std::uint64_t counter) noexcept {
  const double u = 1.0 - uniform(random_bits(seed, stream, 2 * counter));
  const double v = uniform(random_bits(seed, stream, 2 * counter + 1));
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace gpt
