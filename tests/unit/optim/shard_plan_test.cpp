#include "libddp/optim/shard_plan.h"

#include <gtest/gtest.h>

namespace ddp {
namespace {

ArenaPlan make_arena(const std::vector<std::int64_t>& numels, int world,
                     std::int64_t bucket_elements) {
  ArenaPlan arena;
  for (int i = 0; i < static_cast<int>(numels.size()); ++i)
    arena.parameters.push_back(i);
  arena.layout = BucketLayout(numels, world, bucket_elements);
  return arena;
}

const PieceRules kAlike{.group = [](int) { return 0; },
                        .clock = [](int) { return -1; },
                        .may_merge = [](int) { return true; }};
const PieceRules kApart{.group = [](int) { return 0; },
                        .clock = [](int) { return -1; },
                        .may_merge = [](int) { return false; }};

TEST(ShardPlan, CoversEveryElementOnceOverAllRanks) {
  const std::vector<std::int64_t> numels{101, 7, 1, 0, 1000, 513};
  for (const int world : {1, 2, 3, 4, 8, 1024}) {
    const ArenaPlan arena = make_arena(numels, world, 400);
    std::vector<std::vector<int>> seen(numels.size());
    for (std::size_t i = 0; i < numels.size(); ++i) seen[i].resize(numels[i]);
    for (int rank = 0; rank < world; ++rank) {
      const auto ranges = shard_ranges(arena, rank, true);
      EXPECT_EQ(state_size(ranges), arena.layout.size() / world);
      for (const ShardPiece& piece : shard_pieces(arena, ranges, kApart))
        for (std::int64_t i = 0; i < piece.range.size(); ++i)
          ++seen[piece.parameter][piece.key + i];
    }
    for (const auto& parameter : seen)
      for (const int count : parameter) ASSERT_EQ(count, 1);
  }
}

TEST(ShardPlan, JoinsNeighboursOfOneGroupWithinABucket) {
  const ArenaPlan arena = make_arena({100, 100, 100, 100}, 1, 256);
  const auto ranges = shard_ranges(arena, 0, false);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(shard_pieces(arena, ranges, kAlike).size(), 2u);
  EXPECT_EQ(shard_pieces(arena, ranges, kApart).size(), 4u);
  PieceRules grouped = kAlike;
  grouped.group = [](int owner) { return owner == 2 ? 1 : 0; };
  const auto pieces = shard_pieces(arena, ranges, grouped);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[1].group, 1);
  EXPECT_EQ(pieces[1].state_offset, 128);
}

TEST(ShardPlan, KeepsPiecesWithClocksApart) {
  const ArenaPlan arena = make_arena({10, 10}, 1, 1000);
  PieceRules clocked = kAlike;
  clocked.clock = [](int owner) { return owner; };
  const auto pieces =
      shard_pieces(arena, shard_ranges(arena, 0, false), clocked);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].clock, 1);
  EXPECT_EQ(pieces[1].clock, 0);
}

TEST(ShardPlan, SharesTenToTheElevenElementsOver1024Ranks) {
  const ArenaPlan arena = make_arena(
      std::vector<std::int64_t>(100, 1'000'000'000), 1024, 40'000'000);
  const auto ranges = shard_ranges(arena, 1023, true);
  EXPECT_EQ(state_size(ranges), arena.layout.size() / 1024);
  const auto pieces = shard_pieces(arena, ranges, kAlike);
  EXPECT_EQ(pieces.size(), 100u);
  EXPECT_GT(pieces.back().range.begin, std::int64_t{1} << 36);
}

}  // namespace
}  // namespace ddp
