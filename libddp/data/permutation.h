/// \file
/// Permutation: a keyed shuffle of 0..size-1 in constant memory.
#pragma once

#include <array>
#include <cstdint>

namespace ddp {

/// A pseudo-random bijection of [0, size) onto itself that is computed one
/// index at a time, so that 10^11 samples are shuffled without a table.
///
/// A balanced Feistel network (M. Luby and C. Rackoff, "How to construct
/// pseudorandom permutations from pseudorandom functions", SIAM J. Comput.
/// 17(2), 1988) permutes the next even power of two; an image beyond `size`
/// is sent through again until it lies inside ("cycle walking", J. Black and
/// P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). That
/// takes fewer than four walks on average once size > 64. The result depends
/// on (size, seed, stream) alone, on every machine. Values are immutable;
/// any thread may use one.
class Permutation {
 public:
  /// `stream` tells shuffles of one seed apart, such as epochs.
  /// REQUIRES: size >= 0.
  Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream);

  /// The image of `index`. REQUIRES: 0 <= index < size().
  std::int64_t operator()(std::int64_t index) const noexcept;
  std::int64_t size() const noexcept { return size_; }

 private:
  std::uint64_t encipher(std::uint64_t value) const noexcept;

  static constexpr int kRounds = 8;
  std::int64_t size_;
  int half_bits_;
  std::array<std::uint64_t, kRounds> keys_;
};

}  // namespace ddp
