#include "libddp/data/permutation.h"

#include <algorithm>
#include <bit>

namespace ddp {
namespace {

// A domain below 256 would leave the halves too few bits for the rounds to
// reach all orders of, say, three samples about equally often.
constexpr int kLeastHalfBits = 4;

// The finaliser of SplitMix64 (G. Steele et al., "Fast splittable
// pseudorandom number generators", OOPSLA 2014).
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed,
                         std::uint64_t stream)
    : size_(size) {
  const auto last =
      static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1)) - 1;
  half_bits_ = std::max(kLeastHalfBits,
                        (static_cast<int>(std::bit_width(last)) + 1) / 2);
  std::uint64_t key = mix(mix(seed) ^ stream);
  for (auto& round : keys_) round = key = mix(key);
}

std::int64_t Permutation::operator()(std::int64_t index) const noexcept {
  // Ends: the walk follows a cycle that holds `index` itself, which is inside.
  auto value = static_cast<std::uint64_t>(index);
  do {
    value = encipher(value);
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

std::uint64_t Permutation::encipher(std::uint64_t value) const noexcept {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (const std::uint64_t key : keys_) {
    const std::uint64_t next = left ^ (mix(right ^ key) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

}  // namespace ddp
