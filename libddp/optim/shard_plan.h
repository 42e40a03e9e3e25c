/// \file
/// Which elements a rank updates, and where their optimizer state lies.
/// Arithmetic only.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "libddp/reduce/plan.h"

namespace ddp {

/// A run of elements of one arena that one rank updates alike.
struct ShardPiece {
  ElementRange range;             ///< in the arena
  std::int64_t state_offset = 0;  ///< in the rank's state of that arena
  int parameter = -1;             ///< owner of the first element
  std::int64_t key = 0;           ///< first element's index in its parameter
  int group = 0;
  int clock = -1;
};

/// The part of one bucket that a rank holds the optimizer state of.
struct ShardRange {
  int bucket = 0;
  ElementRange range;             ///< in the arena
  std::int64_t state_offset = 0;  ///< of range.begin
};

/// All buckets of an arena: whole, or `rank`'s slices of them when `sharded`.
std::vector<ShardRange> shard_ranges(const ArenaPlan& arena, int rank,
                                     bool sharded);

/// Elements of state that those ranges need.
std::int64_t state_size(const std::vector<ShardRange>& ranges);

/// What differs between parameters.
struct PieceRules {
  std::function<int(int owner)> group;
  /// -1 for the common clock.
  std::function<int(int owner)> clock;
  /// Pieces of neighbours with equal group and no clock may become one.
  std::function<bool(int owner)> may_merge;
};

/// Cuts the ranges at parameter edges, and joins neighbours (with the padding
/// between them, which is zero and stays zero) where the rules allow.
std::vector<ShardPiece> shard_pieces(const ArenaPlan& arena,
                                     const std::vector<ShardRange>& ranges,
                                     const PieceRules& rules);

}  // namespace ddp
