#include "libddp/reduce/bucket_layout.h"

#include <gtest/gtest.h>

#include "kernels/core/error.h"

namespace ddp {
namespace {

TEST(BucketLayout, LaysParametersInReverseOnAlignedStarts) {
  const std::int64_t numels[] = {3, 200, 1};
  const BucketLayout layout(numels, 2, 1 << 20);
  EXPECT_EQ(layout.parameter(2), (ElementRange{0, 1}));
  EXPECT_EQ(layout.parameter(1), (ElementRange{128, 328}));
  EXPECT_EQ(layout.parameter(0), (ElementRange{384, 387}));
  ASSERT_EQ(layout.buckets().size(), 1u);
  EXPECT_EQ(layout.buckets()[0].range, (ElementRange{0, 512}));
  EXPECT_EQ(layout.buckets()[0].parameters, (std::vector<int>{2, 1, 0}));
}

TEST(BucketLayout, GivesEveryRankAnEqualAlignedSlice) {
  const std::int64_t numels[] = {101, 7, 1, 0, 1000};
  for (const int world : {1, 2, 3, 4, 8, 1024}) {
    const BucketLayout layout(numels, world, 300);
    std::int64_t at = 0;
    for (int b = 0; b < static_cast<int>(layout.buckets().size()); ++b) {
      ASSERT_EQ(layout.buckets()[b].range.begin, at);
      for (int rank = 0; rank < world; ++rank) {
        const ElementRange slice = layout.slice(b, rank);
        ASSERT_EQ(slice.begin, at) << "world " << world;
        ASSERT_EQ(slice.size() % kAlignElements, 0);
        ASSERT_EQ(slice.size(), layout.slice(b, 0).size());
        at = slice.end;
      }
    }
    EXPECT_EQ(at, layout.size());
  }
}

TEST(BucketLayout, ClosesABucketBeforeItOutgrowsItsLimit) {
  const std::int64_t numels[] = {128, 128, 128, 500, 128};
  const BucketLayout layout(numels, 1, 256);
  ASSERT_EQ(layout.buckets().size(), 4u);
  EXPECT_EQ(layout.buckets()[0].parameters, (std::vector<int>{4}));
  EXPECT_EQ(layout.buckets()[1].parameters, (std::vector<int>{3}));
  EXPECT_EQ(layout.buckets()[2].parameters, (std::vector<int>{2, 1}));
  EXPECT_EQ(layout.buckets()[3].parameters, (std::vector<int>{0}));
  EXPECT_EQ(layout.bucket_of(3), 1);
}

TEST(BucketLayout, HoldsTenToTheElevenParametersOver1024Ranks) {
  std::vector<std::int64_t> numels(1000, 100'000'000);
  const BucketLayout layout(numels, 1024, 40'000'000);
  EXPECT_EQ(layout.buckets().size(), 1000u);
  EXPECT_GE(layout.size(), 100'000'000'000);
  // Padding is less than world * alignment elements a bucket.
  EXPECT_LT(layout.size(), 100'000'000'000 + 1000LL * 1024 * 128);
  EXPECT_EQ(layout.slice(999, 1023).end, layout.size());
  EXPECT_EQ(layout.parameter(999).begin, 0);
}

TEST(BucketLayout, AcceptsNoParametersAndEmptyOnes) {
  const BucketLayout none({}, 4, 100);
  EXPECT_EQ(none.size(), 0);
  EXPECT_TRUE(none.buckets().empty());
  const std::int64_t empty[] = {0};
  const BucketLayout one(empty, 4, 100);
  ASSERT_EQ(one.buckets().size(), 1u);
  EXPECT_EQ(one.slice(0, 3).size(), 0);
}

TEST(BucketLayout, SeparatesFrozenParameters) {
  const std::int64_t numels[] = {1, 1};
  const BucketLayout layout(numels, 2, 1 << 20, /*separate=*/true);
  ASSERT_EQ(layout.buckets().size(), 2u);
  EXPECT_EQ(layout.parameter(0).begin, 256);
}

TEST(BucketLayout, RefusesAWorldWithoutRanks) {
  EXPECT_THROW(BucketLayout({}, 0, 1), InvalidArgument);
}

TEST(BucketElements, AimsAtADozenBucketsWithinItsLimits) {
  constexpr std::size_t kWanted = 25u << 20;
  EXPECT_EQ(bucket_elements(1'000'000'000, 4, kWanted), kWanted / 4);
  EXPECT_EQ(bucket_elements(12'000'000, 4, kWanted), 1'000'000);
  EXPECT_EQ(bucket_elements(1000, 4, kWanted), 16384);
  EXPECT_EQ(bucket_elements(1000, 4, 4), 1);
  // 24 equal layers: the last bucket holds at most a fifth.
  EXPECT_LE(bucket_elements(24 * 1'000'000, 4, kWanted) * 5, 24 * 1'000'000);
}

TEST(ElementRange, IntersectsToTheCommonPart) {
  EXPECT_EQ(intersect({0, 10}, {5, 20}), (ElementRange{5, 10}));
  EXPECT_EQ(intersect({0, 5}, {7, 9}).size(), 0);
}

}  // namespace
}  // namespace ddp
