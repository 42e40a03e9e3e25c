/// \file
/// Tiles: the inner loops of the CPU twins, over runs of elements that fit
/// into the first cache, compiled once per instruction set.
///
/// g++ 12 gives up on a loop over many streams, since it would need too many
/// alias checks; tiles have few streams, all __restrict. Loops hold no fused
/// multiply-add (-ffp-contract=off), so all instruction sets, and the GPU,
/// give the same bits.
#pragma once

#include <cstdint>

#include "kernels/core/dtype.h"
#include "kernels/formula/adam.h"
#include "kernels/formula/sgd.h"
#include "kernels/step_vote.h"

namespace ddp::cpu {

/// Elements of one tile: 4 KiB in fp32.
inline constexpr std::int64_t kTile = 1024;
/// Running sums of a norm; element i of a chunk goes to sum i % kLanes.
inline constexpr int kLanes = 16;

enum class Isa { kBaseline, kAvx2, kAvx512 };

/// Inner loops with arithmetic in S, indexed by the floating DTypes.
template <typename S>
struct Tiles {
  using Widen = void (*)(S* out, const void* in, std::int64_t n);
  using Narrow = void (*)(void* out, const S* in, std::int64_t n);
  using Norm = void (*)(double* lanes, const S* in, double power,
                        std::int64_t n);
  Widen widen[4];
  Widen add[4];  ///< out += in
  Narrow narrow[4];
  Norm norm[4];  ///< by NormKind
  void (*scale)(S* x, S factor, std::int64_t n);
  bool (*all_finite)(const S* x, std::int64_t n);
  /// The gradient is g * scale.
  void (*adam)(S* w, S* m, S* v, const S* g, S scale, std::int64_t n,
               const formula::AdamCoefficients<S>& c);
  void (*sgd)(S* w, const S* g, S scale, std::int64_t n,
              const formula::SgdCoefficients<S>& c);
  void (*sgd_momentum)(S* w, S* b, const S* g, S scale, std::int64_t n,
                       const formula::SgdCoefficients<S>& c);
};

/// Sum of checksum terms of `words` 8-byte words, the first at `index`.
using Checksum = std::uint64_t (*)(const void* data, std::int64_t words,
                                   std::uint64_t index, std::uint64_t seed);

struct TileSet {
  Tiles<float> single;
  Tiles<double> wide;
  Checksum checksum;
};

/// Whether this build and this processor have the instruction set.
bool has(Isa isa) noexcept;
/// REQUIRES: has(isa).
const TileSet& tile_set(Isa isa) noexcept;
/// The widest that the processor has.
const TileSet& tile_set() noexcept;

template <typename S>
const Tiles<S>& tiles() noexcept {
  if constexpr (sizeof(S) == sizeof(float)) {
    return tile_set().single;
  } else {
    return tile_set().wide;
  }
}

constexpr int index_of(DType dtype) noexcept { return static_cast<int>(dtype); }
static_assert(index_of(DType::kFloat32) == 0 &&
              index_of(DType::kFloat64) == 1 &&
              index_of(DType::kBFloat16) == 2 &&
              index_of(DType::kFloat16) == 3);

}  // namespace ddp::cpu
