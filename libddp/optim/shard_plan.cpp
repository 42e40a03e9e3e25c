#include "libddp/optim/shard_plan.h"

namespace ddp {

std::vector<ShardRange> shard_ranges(const ArenaPlan& arena, int rank,
                                     bool sharded) {
  std::vector<ShardRange> ranges;
  std::int64_t offset = 0;
  for (int b = 0; b < static_cast<int>(arena.layout.buckets().size()); ++b) {
    const ElementRange range =
        sharded ? arena.layout.slice(b, rank) : arena.layout.buckets()[b].range;
    ranges.push_back({b, range, offset});
    offset += range.size();
  }
  return ranges;
}

std::int64_t state_size(const std::vector<ShardRange>& ranges) {
  return ranges.empty()
             ? 0
             : ranges.back().state_offset + ranges.back().range.size();
}

std::vector<ShardPiece> shard_pieces(const ArenaPlan& arena,
                                     const std::vector<ShardRange>& ranges,
                                     const PieceRules& rules) {
  std::vector<ShardPiece> pieces;
  for (const ShardRange& shard : ranges) {
    bool can_extend = false;  // never across the edge of a range
    for (const int index : arena.layout.buckets()[shard.bucket].parameters) {
      const ElementRange whole = arena.layout.parameter(index);
      const ElementRange part = intersect(whole, shard.range);
      if (part.size() <= 0) continue;
      const int owner = arena.parameters[index];
      const int group = rules.group(owner);
      const int clock = rules.clock(owner);
      const bool mergeable = clock < 0 && rules.may_merge(owner);
      if (can_extend && mergeable && pieces.back().group == group) {
        pieces.back().range.end = part.end;
        continue;
      }
      pieces.push_back({part,
                        shard.state_offset + part.begin - shard.range.begin,
                        owner, part.begin - whole.begin, group, clock});
      can_extend = mergeable;
    }
  }
  return pieces;
}

}  // namespace ddp
