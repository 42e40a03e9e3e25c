// Linked with the CPU and with the GPU; machine() says which is tested.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/core/error.h"
#include "kernels/step_vote.h"
#include "tests/unit/kernels/machine.h"

namespace ddp::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

StepControl decided(const std::vector<Vote>& votes, VoteRules rules,
                    StepControl before = {}) {
  rules.world = static_cast<std::int32_t>(votes.size());
  const Values<Vote> device_votes(votes);
  const Value<StepControl> control(before);
  decide(device_votes.get(), rules, control.get(), machine().stream());
  return control.value();
}

std::vector<Vote> votes_of(int world) {
  std::vector<Vote> votes(static_cast<std::size_t>(world));
  for (Vote& vote : votes) {
    vote.norm = 1;
    vote.step = 12;
    vote.operations = 77;
  }
  return votes;
}

TEST(DecideSmall, ClipsByTheNormOverAllRanks) {
  auto votes = votes_of(2);
  votes[0].norm = 9;  // gradients 3 and 4 on two ranks
  votes[1].norm = 16;
  StepControl c = decided(votes, {.clip_norm = 1});
  EXPECT_EQ(c.norm, 5);
  EXPECT_DOUBLE_EQ(c.gradient_scale, 0.2);
  EXPECT_EQ(c.apply, 1);
  votes[0].norm = 3;
  votes[1].norm = 4;
  EXPECT_EQ(decided(votes, {.kind = NormKind::kInfinity}).norm, 4);
  EXPECT_EQ(decided(votes, {.kind = NormKind::kOne}).norm, 7);
  votes[0].norm = 27;
  votes[1].norm = 64;
  EXPECT_NEAR(decided(votes, {.kind = NormKind::kPower, .power = 3}).norm,
              std::cbrt(91.0), 1e-12);
}

TEST(DecideSmall, LeavesAGradientWithinTheNormExactly) {
  auto votes = votes_of(1);
  votes[0].norm = 25;
  EXPECT_EQ(decided(votes, {.clip_norm = 5}).gradient_scale, 1.0f);
  EXPECT_EQ(decided(votes, {.clip_norm = 0}).gradient_scale, 1.0f);
  EXPECT_EQ(
      decided(votes, {.clip_norm = 5, .gradient_scale = 0.125}).gradient_scale,
      0.125f);
}

TEST(DecideSmall, TakesTheNormOfTheScaledGradient) {
  auto votes = votes_of(2);
  votes[0].norm = votes[1].norm = 50;
  const StepControl c =
      decided(votes, {.clip_norm = 2, .gradient_scale = -0.5});
  EXPECT_EQ(c.norm, 5);
  EXPECT_DOUBLE_EQ(c.gradient_scale, -0.2);
}

TEST(DecideSmall, CountsAReplicatedNormOnce) {
  auto votes = votes_of(4);
  for (Vote& vote : votes) vote.norm = 25;
  EXPECT_EQ(decided(votes, {.parts_are_disjoint = false}).norm, 5);
}

TEST(DecideSmall, DividesByTheItemsOfAllRanks) {
  auto votes = votes_of(2);
  votes[0].num_items = 3;
  votes[1].num_items = 5;
  votes[0].norm = votes[1].norm = 8;
  const StepControl c = decided(votes, {.scale_by_items = true});
  EXPECT_EQ(c.gradient_scale, 0.125f);
  EXPECT_EQ(c.num_items, 8);
  EXPECT_EQ(c.norm, 0.5);
  votes[0].num_items = votes[1].num_items = 0;
  EXPECT_EQ(decided(votes, {.scale_by_items = true}).gradient_scale, 0.0f);
}

TEST(DecideSmall, SkipsWhatIsNotFiniteAndNamesPositionAndRank) {
  auto votes = votes_of(3);
  votes[1].norm = kInfinity;
  votes[1].first_non_finite = 40;
  votes[2].norm = std::nan("");
  votes[2].first_non_finite = 30;
  StepControl before;
  before.time = 5;
  before.skipped = 2;
  before.skipped_in_a_row = 1;
  const StepControl c = decided(votes, {.clip_norm = 1}, before);
  EXPECT_EQ(c.apply, 0);
  EXPECT_EQ(c.time, 5);
  EXPECT_EQ(c.skipped, 3);
  EXPECT_EQ(c.skipped_in_a_row, 2);
  EXPECT_EQ(c.first_non_finite, 30);
  EXPECT_EQ(c.non_finite_rank, 2);
  EXPECT_EQ(c.loss_rank, -1);
  EXPECT_FALSE(std::isfinite(c.norm));
  EXPECT_EQ(c.gradient_scale, 1.0f);  // an unusable norm clips nothing

  const StepControl next = decided(votes_of(3), {}, c);
  EXPECT_EQ(next.apply, 1);
  EXPECT_EQ(next.time, 6);
  EXPECT_EQ(next.skipped, 3);
  EXPECT_EQ(next.skipped_in_a_row, 0);
  EXPECT_EQ(next.first_non_finite, kAllFinite);
  EXPECT_EQ(next.non_finite_rank, -1);
}

TEST(DecideSmall, AppliesANonFiniteGradientWhereTheRulesSaySo) {
  auto votes = votes_of(2);
  votes[0].first_non_finite = 0;
  votes[0].norm = kInfinity;
  const StepControl c =
      decided(votes, {.clip_norm = 1, .skip_non_finite = false});
  EXPECT_EQ(c.apply, 1);
  EXPECT_EQ(c.time, 1);
  EXPECT_EQ(c.gradient_scale, 1.0f);
}

TEST(DecideSmall, SkipsALossThatIsNotFinite) {
  auto votes = votes_of(2);
  votes[1].flags = kVoteHasLoss | kVoteLossNotFinite;
  votes[1].loss = kInfinity;
  const StepControl c = decided(votes, {});
  EXPECT_EQ(c.apply, 0);
  EXPECT_EQ(c.loss_rank, 1);
}

TEST(DecideSmall, AveragesTheLossOverTheRanksThatGaveOne) {
  auto votes = votes_of(3);
  votes[0].loss = 2;
  votes[2].loss = 4;
  votes[1].loss = 100;
  votes[0].flags = votes[2].flags = kVoteHasLoss;
  EXPECT_EQ(decided(votes, {}).loss, 3);
  EXPECT_EQ(decided(votes_of(2), {}).loss, 0);
}

TEST(DecideSmall, RefusesToApplyWhenOperationsDiffer) {
  auto votes = votes_of(4);
  votes[2].operations = 78;
  votes[3].operations = 79;
  const StepControl c = decided(votes, {.skip_non_finite = false});
  EXPECT_EQ(c.apply, 0);
  EXPECT_EQ(c.operations_rank, 2);
  EXPECT_EQ(decided(votes_of(4), {}).operations_rank, -1);
}

TEST(DecideSmall, ComparesReplicasAmongTheRanksThatChecked) {
  auto votes = votes_of(4);
  votes[0].replica = 1;
  votes[1].replica = 2;  // not computed this step
  votes[2].replica = 1;
  votes[3].replica = 3;
  for (const int rank : {0, 2, 3})
    votes[static_cast<std::size_t>(rank)].flags = kVoteHasReplica;
  const StepControl c = decided(votes, {});
  EXPECT_EQ(c.replica_rank, 3);
  EXPECT_EQ(c.apply, 1);
  votes[3].replica = 1;
  EXPECT_EQ(decided(votes, {}).replica_rank, -1);
}

TEST(DecideSmall, StopsAllWhenOneAsks) {
  auto votes = votes_of(3);
  EXPECT_EQ(decided(votes, {}).stop, 0);
  votes[2].flags = kVoteStop;
  const StepControl c = decided(votes, {});
  EXPECT_EQ(c.stop, 1);
  EXPECT_EQ(c.apply, 1);
  EXPECT_EQ(c.step, 12u);
}

TEST(DecideSmall, CountsAThousandRanksInOrder) {
  auto votes = votes_of(1024);
  double sum = 0;
  for (std::size_t r = 0; r < votes.size(); ++r) {
    votes[r].norm = 1.0 / static_cast<double>(r + 1);
    sum += votes[r].norm;
  }
  votes[1023].flags = kVoteStop;
  const StepControl c = decided(votes, {.kind = NormKind::kOne});
  EXPECT_EQ(c.norm, sum);
  EXPECT_EQ(c.stop, 1);
}

Vote cast_with(const Vote& host, const std::vector<NormPart>& parts,
               NormKind kind, const float* loss, const std::uint64_t* replica) {
  const Values<NormPart> device_parts(parts);
  const Value<Vote> vote;
  cast_vote(host, device_parts.get(), static_cast<std::int32_t>(parts.size()),
            kind, loss, replica, vote.get(), machine().stream());
  return vote.value();
}

TEST(CastVoteSmall, JoinsPartsLossAndReplica) {
  Vote host;
  host.num_items = 6;
  host.operations = 99;
  host.flags = kVoteStop;
  host.step = 4;
  const Value<float> loss(2.5f);
  const Value<std::uint64_t> replica(1234);
  const std::vector<NormPart> parts = {{1, kAllFinite}, {2, 17}, {4, 19}};
  const Vote vote =
      cast_with(host, parts, NormKind::kTwo, loss.get(), replica.get());
  EXPECT_EQ(vote.norm, 7);
  EXPECT_EQ(vote.first_non_finite, 17);
  EXPECT_EQ(vote.num_items, 6);
  EXPECT_EQ(vote.loss, 2.5);
  EXPECT_EQ(vote.operations, 99u);
  EXPECT_EQ(vote.replica, 1234u);
  EXPECT_EQ(vote.step, 4u);
  EXPECT_EQ(vote.flags, kVoteStop | kVoteHasLoss | kVoteHasReplica);
  EXPECT_EQ(cast_with(host, parts, NormKind::kInfinity, nullptr, nullptr).norm,
            4);
}

TEST(CastVoteSmall, KeepsTheHostsLossWithoutOneOnTheDevice) {
  Vote host;
  host.loss = 3;
  host.flags = kVoteHasLoss | kVoteHasReplica | kVoteLossNotFinite;
  const Vote vote = cast_with(host, {}, NormKind::kTwo, nullptr, nullptr);
  EXPECT_EQ(vote.loss, 3);
  EXPECT_EQ(vote.flags, +kVoteHasLoss);
  EXPECT_EQ(vote.norm, 0);
  EXPECT_EQ(vote.first_non_finite, kAllFinite);
}

TEST(CastVoteSmall, FlagsALossThatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    const Value<float> loss(bad);
    const Vote vote = cast_with({}, {}, NormKind::kTwo, loss.get(), nullptr);
    EXPECT_EQ(vote.flags, kVoteHasLoss | kVoteLossNotFinite);
  }
}

TEST(DecideSmall, RefusesWrongArguments) {
  const Value<Vote> vote;
  const Value<StepControl> control;
  const StreamView stream = machine().stream();
  EXPECT_THROW(decide(vote.get(), {.world = 0}, control.get(), stream),
               InvalidArgument);
  EXPECT_THROW(decide(vote.get(), {.clip_norm = -1}, control.get(), stream),
               InvalidArgument);
  EXPECT_THROW(decide(nullptr, {}, control.get(), stream), InvalidArgument);
}

}  // namespace
}  // namespace ddp::test
