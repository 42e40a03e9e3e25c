/// \file
/// A checksum whose terms can be added in any order.
///
/// The bytes are read as little-endian 64-bit words, the last one padded with
/// zeros. Each word, offset by a key of its position, goes through a
/// bijection of 64 bits (the finaliser of Steele, Lea & Flood 2014,
/// SplitMix), and the results are added modulo 2^64: a change of one word
/// always changes the sum, and equal words at exchanged positions do too.
#pragma once

#include "kernels/core/half.h"

namespace ddp::formula {

DDP_HOST_DEVICE inline std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Term of the word at `index`.
DDP_HOST_DEVICE inline std::uint64_t checksum_term(std::uint64_t word,
                                                   std::uint64_t index,
                                                   std::uint64_t seed) {
  return mix(word + (index + 1) * 0x9e3779b97f4a7c15u + seed);
}

/// What the length contributes, so that trailing zeros count.
DDP_HOST_DEVICE inline std::uint64_t checksum_start(std::uint64_t bytes,
                                                    std::uint64_t seed) {
  return mix(bytes ^ mix(seed + 0x9e3779b97f4a7c15u));
}

}  // namespace ddp::formula
