// Gradients of several backwards, of items, and of ranks with more or fewer
// batches than others.
#include <gmock/gmock.h>

#include "tests/support/ranks.h"
#include "tests/support/training.h"

namespace ddp::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const StreamView kCpu = StreamView::cpu();

class AccumulationAtStage : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, AccumulationAtStage, testing::Values(0, 1));

TEST_P(AccumulationAtStage, WhetherToReduceIsDecidedWhenGradientsAreReady) {
  const double first[] = {1, 3}, second[] = {3, 4};  // 4 and 7 in all
  run_ranks(2, [&](World& world) {
    DataParallel dp(world, scalars({"a"}), {.zero_stage = GetParam()});
    fill_ones(dp);
    const int r = world.rank();
    {
      const NoSync local(dp);
      give(dp, 0, {first[r]});
    }
    give(dp, 0, {second[r]});
    dp.finish_backward(kCpu);
    EXPECT_THAT(dp.read_gradient(0), ElementsAre(5.5f));
    dp.zero_grad();

    give(dp, 0, {first[r]});  // reduced on the wrong micro-batch
    dp.finish_backward(kCpu);
    {
      const NoSync local(dp);
      give(dp, 0, {second[r]});
    }
    EXPECT_THAT(error_of<InvalidArgument>([&] { dp.step({}, kCpu); }),
                HasSubstr("would lose 1 gradients"));
    dp.sync_gradients(kCpu);
    EXPECT_THAT(dp.read_gradient(0), ElementsAre(5.5f));
    dp.zero_grad();

    give(dp, 0, {first[r]});  // reduced in both
    dp.finish_backward(kCpu);
    give(dp, 0, {second[r]});
    dp.finish_backward(kCpu);
    EXPECT_THAT(dp.read_gradient(0), ElementsAre(5.5f));
    dp.step({}, kCpu);
  });
}

TEST_P(AccumulationAtStage,
       SyncGradientsReducesWhatWasAccumulatedAndNothingTwice) {
  run_ranks(2, [&](World& world) {
    DataParallel dp(world, scalars({"a", "b"}), {.zero_stage = GetParam()});
    {
      const NoSync local(dp);
      for (int micro = 1; micro <= 3; ++micro)
        for (const int p : {1, 0}) give(dp, p, {micro * (world.rank() + 1.0)});
    }
    EXPECT_THAT(error_of<InvalidArgument>([&] { dp.step({}, kCpu); }),
                HasSubstr("would lose 6 gradients"));
    for (int again = 0; again < 2; ++again) {
      dp.sync_gradients(kCpu);
      EXPECT_THAT(dp.read_gradient(0), ElementsAre(9.0f));
      EXPECT_THAT(dp.read_gradient(1), ElementsAre(9.0f));
    }
  });
}

TEST_P(AccumulationAtStage, StepWithoutAnyGradientSaysSo) {
  run_ranks(2, [&](World& world) {
    DataParallel dp(world, scalars({"a"}), {.zero_stage = GetParam()});
    EXPECT_THAT(error_of<InvalidArgument>([&] { dp.step({}, kCpu); }),
                HasSubstr("step 0 has no gradients"));
  });
}

TEST_P(AccumulationAtStage, ItemsWeighAsManyAsTheyAre) {
  run_ranks(2, [&](World& world) {
    DataParallel dp(world, scalars({"a"}),
                    {.zero_stage = GetParam(), .optimizer = Sgd{.lr = 1.0f}});
    fill_ones(dp);
    // One token of gradient 1; three of gradient 2, over two micro-batches.
    if (world.rank() == 0) {
      give(dp, 0, {1.0});
    } else {
      {
        const NoSync local(dp);
        give(dp, 0, {2.0});
      }
      give(dp, 0, {4.0});
    }
    dp.step({.num_items = world.rank() == 0 ? 1.0 : 3.0}, kCpu);
    EXPECT_EQ(dp.read_weight(0)[0], 1 - 1.75f);
    EXPECT_EQ(dp.wait_reports().at(0).num_items, 4.0);
    // Without counts: the mean of means.
    give(dp, 0, {world.rank() + 1.0});
    dp.step({}, kCpu);
    EXPECT_EQ(dp.read_weight(0)[0], 1 - 1.75f - 1.5f);
  });
}

class JoiningAtStage : public testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(StagesAndMicroBatches, JoiningAtStage,
                         testing::Combine(testing::Values(0, 1),
                                          testing::Values(1, 2)));

TEST_P(JoiningAtStage, RanksThatRunOutOfDataJoinTheOthers) {
  const auto [stage, micros] = GetParam();
  std::vector<float> ends(2);
  run_ranks(2, [&, stage = stage, micros = micros](World& world) {
    DataParallel dp(world, scalars({"a", "b"}),
                    {.zero_stage = stage, .optimizer = Sgd{.lr = 0.5f}});
    fill_ones(dp);
    const int batches = world.rank() == 0 ? 5 * micros : 4 * micros;
    for (int batch = 0; batch < batches; ++batch) {
      dp.set_gradient_sync(batch % micros == micros - 1);
      give(dp, 1, {1.0});
      give(dp, 0, {1.0});
      if (dp.gradient_sync()) dp.step({}, kCpu);
    }
    dp.join(kCpu);
    ends[world.rank()] = dp.read_weight(0)[0];
    EXPECT_EQ(dp.wait_reports().size(), 5u);
  });
  // Four whole steps, and a fifth in which rank 1 contributes nothing.
  EXPECT_EQ(ends[0], 1 - 0.5f * micros * (4 + 0.5f));
  EXPECT_EQ(ends[1], ends[0]);
}

TEST(Accumulation, ARankThatStopsEarlyIsNamedWithItsSteps) {
  std::vector<std::string> errors(2);
  run_ranks(
      2,
      [&](World& world) {
        DataParallel dp(world, scalars({"a"}));
        errors[world.rank()] = error_of<Error>([&] {
          for (int batch = 0; batch < (world.rank() == 0 ? 5 : 4); ++batch) {
            give(dp, 0, {1.0});
            dp.step({}, kCpu);
          }
        });
      },
      std::chrono::milliseconds(1500));
  EXPECT_EQ(errors[1], "nothing was thrown");
  EXPECT_THAT(errors[0], HasSubstr("of step 4"));
  EXPECT_THAT(errors[0], HasSubstr("rank 1 ended after 4 steps"));
}

TEST_P(AccumulationAtStage, TheFirstBackwardEverMayBeLocal) {
  run_ranks(2, [&](World& world) {
    DataParallel dp(world, scalars({"a"}), {.zero_stage = GetParam()});
    for (int window = 0; window < 3; ++window) {
      {
        const NoSync local(dp);
        give(dp, 0, {1.0});
      }
      give(dp, 0, {2.0 + world.rank()});
      dp.finish_backward(kCpu);
      EXPECT_THAT(dp.read_gradient(0), ElementsAre(3.5f));
      dp.step({}, kCpu);
    }
  });
}

TEST_P(AccumulationAtStage, ManyBf16GradientsAddUpExactly) {
  run_ranks(1, [&](World& world) {
    DataParallel dp(world,
                    {{.name = "a", .shape = {3}, .dtype = DType::kBFloat16}},
                    {.zero_stage = GetParam(), .precision = Precision::bf16()});
    dp.set_gradient_sync(false);
    for (int micro = 0; micro < 512; ++micro) give(dp, 0, {1, 1, 1});
    dp.sync_gradients(kCpu);
    EXPECT_THAT(dp.read_gradient(0), testing::Each(512.0f));
  });
}

}  // namespace
}  // namespace ddp::test
