#include "libddp/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/core/error.h"

namespace ddp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Sample> pass(DistributedSampler& sampler) {
  std::vector<Sample> samples;
  while (const auto sample = sampler.next()) samples.push_back(*sample);
  return samples;
}

std::vector<std::int64_t> indices(const std::vector<Sample>& samples) {
  std::vector<std::int64_t> result;
  for (const Sample& sample : samples) result.push_back(sample.index);
  return result;
}

std::vector<DistributedSampler> ranks(SamplerOptions options) {
  std::vector<DistributedSampler> result;
  for (options.rank = 0; options.rank < options.world; ++options.rank)
    result.emplace_back(options);
  return result;
}

std::string text_of(const SamplerOptions& options) {
  try {
    DistributedSampler sampler(options);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(DistributedSampler, DealsTheOrderOutInTurn) {
  auto all = ranks({.size = 8, .world = 4, .shuffle = false});
  EXPECT_THAT(indices(pass(all[0])), ElementsAre(0, 4));
  EXPECT_THAT(indices(pass(all[1])), ElementsAre(1, 5));
  EXPECT_THAT(indices(pass(all[3])), ElementsAre(3, 7));
}

TEST(DistributedSampler, PadsWithTheFirstSamplesAndMarksThem) {
  auto all = ranks({.size = 10, .world = 4, .shuffle = false});
  EXPECT_THAT(pass(all[1]), ElementsAre(Sample{1}, Sample{5}, Sample{9}));
  EXPECT_THAT(pass(all[2]), ElementsAre(Sample{2}, Sample{6}, Sample{0, true}));
  EXPECT_THAT(pass(all[3]), ElementsAre(Sample{3}, Sample{7}, Sample{1, true}));
}

TEST(DistributedSampler, MarksExactlyTheDuplicatesWhenShuffled) {
  std::map<std::int64_t, int> genuine, duplicates;
  for (auto& rank : ranks({.size = 10, .world = 4}))
    for (const Sample& sample : pass(rank))
      ++(sample.is_duplicate ? duplicates : genuine)[sample.index];
  EXPECT_EQ(genuine.size(), 10u);
  EXPECT_EQ(duplicates.size(), 2u);
}

TEST(DistributedSampler, PadsAsOftenAsNeeded) {
  // torch: indices 0 1 2 become 0 1 2 0 1 2 0 for seven ranks.
  std::vector<std::int64_t> drawn;
  int duplicates = 0;
  for (auto& rank : ranks({.size = 3, .world = 7, .shuffle = false})) {
    EXPECT_EQ(rank.length(), 1);
    for (const Sample& sample : pass(rank)) {
      drawn.push_back(sample.index);
      duplicates += sample.is_duplicate;
    }
  }
  EXPECT_THAT(drawn, ElementsAre(0, 1, 2, 0, 1, 2, 0));
  EXPECT_EQ(duplicates, 4);
}

TEST(DistributedSampler, WithoutPaddingGivesEveryIndexOnce) {
  std::vector<std::int64_t> lengths, drawn;
  for (auto& rank :
       ranks({.size = 10, .world = 4, .padding = Padding::kNone})) {
    lengths.push_back(rank.length());
    for (const Sample& sample : pass(rank)) {
      drawn.push_back(sample.index);
      EXPECT_FALSE(sample.is_duplicate);
    }
  }
  EXPECT_THAT(lengths, ElementsAre(3, 3, 2, 2));
  std::sort(drawn.begin(), drawn.end());
  EXPECT_THAT(drawn, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(DistributedSampler, DropLastLeavesOutTheTail) {
  auto all =
      ranks({.size = 10, .world = 4, .shuffle = false, .drop_last = true});
  for (auto& rank : all) EXPECT_EQ(rank.length(), 2);
  EXPECT_THAT(indices(pass(all[3])), ElementsAre(3, 7));
}

TEST(DistributedSampler, DropLastOfFewerSamplesThanRanksIsEmptyWithANotice) {
  DistributedSampler sampler(
      {.size = 3, .rank = 5, .world = 7, .drop_last = true});
  EXPECT_EQ(sampler.length(), 0);
  EXPECT_THAT(sampler.notice(), HasSubstr("rank 5 of 7"));
  EXPECT_THAT(sampler.notice(), HasSubstr("3 samples with drop_last"));
  EXPECT_FALSE(sampler.next());
}

TEST(DistributedSampler, TakesAnEmptyDataSet) {
  for (const bool drop_last : {false, true}) {
    DistributedSampler sampler({.size = 0, .world = 2, .drop_last = drop_last});
    EXPECT_EQ(sampler.length(), 0);
    EXPECT_THAT(sampler.notice(), HasSubstr("0 samples"));
    EXPECT_FALSE(sampler.next());
    EXPECT_FALSE(sampler.next());
  }
  EXPECT_EQ(DistributedSampler({.size = 1}).notice(), "");
}

TEST(DistributedSampler, AdvancesByItselfAfterAFullPass) {
  DistributedSampler sampler({.size = 22, .world = 2});
  const auto first = pass(sampler);
  EXPECT_EQ(sampler.epoch(), 1u);
  const auto second = pass(sampler);
  const auto third = pass(sampler);
  EXPECT_EQ(sampler.epoch(), 3u);
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
  EXPECT_NE(first, third);
}

TEST(DistributedSampler, AnExplicitEpochWins) {
  DistributedSampler sampler({.size = 22, .world = 2});
  const auto first = pass(sampler);
  sampler.set_epoch(0);
  EXPECT_EQ(pass(sampler), first);
  sampler.set_epoch(7);
  const auto seventh = pass(sampler);
  EXPECT_EQ(sampler.epoch(), 8u);
  DistributedSampler other({.size = 22, .world = 2});
  other.set_epoch(7);
  EXPECT_EQ(pass(other), seventh);
}

TEST(DistributedSampler, SettingTheCurrentEpochKeepsThePosition) {
  DistributedSampler sampler({.size = 10});
  sampler.restore({4, 6, 0});
  sampler.set_epoch(4);
  EXPECT_EQ(sampler.remaining(), 4);
  sampler.set_epoch(5);
  EXPECT_EQ(sampler.remaining(), 10);
}

TEST(DistributedSampler, ResumesAtAnyWorldSizeWithoutRepeatOrLoss) {
  for (const int before : {1, 2, 3, 4, 7})
    for (const int after : {1, 2, 3, 5, 8})
      for (int steps = 1; steps <= 100 / before; ++steps) {
        std::multiset<std::int64_t> drawn;
        SamplerState state;
        for (auto& rank : ranks({.size = 103, .world = before, .seed = 9})) {
          for (int step = 0; step < steps; ++step)
            drawn.insert(rank.next()->index);
          state = rank.state();
        }
        EXPECT_EQ(state, (SamplerState{0, std::int64_t{steps} * before, 9}));
        for (auto& rank : ranks({.size = 103, .world = after})) {
          rank.restore(state);
          for (const Sample& sample : pass(rank))
            if (!sample.is_duplicate) drawn.insert(sample.index);
        }
        ASSERT_EQ(drawn.size(), 103u);
        ASSERT_EQ(std::set(drawn.begin(), drawn.end()).size(), 103u);
      }
}

TEST(DistributedSampler, StateAfterTheLastDrawIsTheNextEpoch) {
  for (const bool drop_last : {false, true})
    for (auto& rank : ranks({.size = 10, .world = 4, .drop_last = drop_last})) {
      while (rank.remaining() > 0) rank.next();
      EXPECT_EQ(rank.state(), (SamplerState{1, 0, 0}));
      EXPECT_FALSE(rank.next());
      EXPECT_EQ(rank.state(), (SamplerState{1, 0, 0}));
    }
}

TEST(DistributedSampler, RanksOfUnevenLengthReportTheSameState) {
  auto all = ranks({.size = 10, .world = 4, .padding = Padding::kNone});
  for (auto& rank : all) {
    rank.next();
    rank.next();
    EXPECT_EQ(rank.state(), (SamplerState{0, 8, 0}));
  }
}

TEST(DistributedSampler, ResumedDropLastCountsFromThePosition) {
  DistributedSampler sampler(
      {.size = 10, .rank = 2, .world = 3, .shuffle = false, .drop_last = true});
  sampler.restore({0, 4, 0});
  EXPECT_EQ(sampler.length(), 2);
  EXPECT_THAT(indices(pass(sampler)), ElementsAre(6, 9));
}

TEST(DistributedSampler, TheSetOfAGlobalBatchIsFreeOfTheWorldSize) {
  std::set<std::set<std::int64_t>> sets;
  for (const int world : {1, 2, 4, 8}) {
    std::set<std::int64_t> batch;
    for (auto& rank : ranks({.size = 1000, .world = world}))
      for (int draw = 0; draw < 16 / world; ++draw)
        batch.insert(rank.next()->index);
    sets.insert(batch);
  }
  EXPECT_EQ(sets.size(), 1u);
}

TEST(DistributedSampler, CountsExactlyAtTenToTheEleventh) {
  const std::int64_t size = 100'000'000'001;
  DistributedSampler padded({.size = size, .rank = 1023, .world = 1024});
  EXPECT_EQ(padded.length(), 97'656'251);
  DistributedSampler dropped(
      {.size = size, .rank = 1023, .world = 1024, .drop_last = true});
  EXPECT_EQ(dropped.length(), 97'656'250);
  std::int64_t sum = 0;
  for (int rank = 0; rank < 1024; ++rank)
    sum += DistributedSampler({.size = size,
                               .rank = rank,
                               .world = 1024,
                               .padding = Padding::kNone})
               .length();
  EXPECT_EQ(sum, size);
}

TEST(DistributedSampler, EndsAPassExactlyAtTenToTheEleventh) {
  const std::int64_t size = 100'000'000'001;
  std::set<std::int64_t> genuine;
  int duplicates = 0;
  for (auto& rank : ranks({.size = size, .world = 1024})) {
    rank.restore({3, size - 1, 0});
    EXPECT_EQ(rank.remaining(), 1);
    const Sample last = *rank.next();
    EXPECT_LT(last.index, size);
    if (last.is_duplicate)
      ++duplicates;
    else
      genuine.insert(last.index);
    EXPECT_FALSE(rank.next());
    EXPECT_EQ(rank.epoch(), 4u);
  }
  EXPECT_EQ(genuine.size(), 1u);
  EXPECT_EQ(duplicates, 1023);
}

TEST(DistributedSampler, NamesBadArguments) {
  EXPECT_THAT(text_of({.size = -1}), HasSubstr("size is -1"));
  EXPECT_THAT(text_of({.size = 1, .world = 0}), HasSubstr("world is 0"));
  EXPECT_THAT(text_of({.size = 1, .world = -2}), HasSubstr("world is -2"));
  EXPECT_THAT(text_of({.size = 1, .rank = 4, .world = 4}),
              HasSubstr("rank is 4, but ranks of a world of 4 are 0 to 3"));
  EXPECT_THAT(text_of({.size = 1, .rank = -1, .world = 4}),
              HasSubstr("rank is -1"));
  EXPECT_THAT(
      text_of({.size = 1, .drop_last = true, .padding = Padding::kNone}),
      HasSubstr("choose one"));
}

TEST(DistributedSampler, RefusesAStateOfALargerDataSet) {
  DistributedSampler sampler({.size = 10});
  try {
    sampler.restore({0, 11, 0});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("sample 11"));
    EXPECT_THAT(error.what(), HasSubstr("has 10"));
  }
  EXPECT_EQ(sampler.remaining(), 10);
}

}  // namespace
}  // namespace ddp
