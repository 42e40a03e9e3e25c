// Norms, clipping, and what happens to numbers that are not finite.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/support/ranks.h"
#include "tests/support/training.h"

namespace ddp::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const StreamView kCpu = StreamView::cpu();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class StepAtStage : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, StepAtStage, testing::Values(0, 1));

struct NormCase {
  NormKind kind;
  double power;
  double norm;
};

TEST_P(StepAtStage, ClipsByAnyNormOverAllSlices) {
  for (const NormCase& c :
       {NormCase{NormKind::kTwo, 2, 5.0}, NormCase{NormKind::kInfinity, 2, 4.0},
        NormCase{NormKind::kOne, 2, 7.0},
        NormCase{NormKind::kPower, 3, std::cbrt(91.0)}})
    run_ranks(2, [&](World& world) {
      DataParallel dp(
          world, {{.name = "a", .shape = {128}}, {.name = "b", .shape = {128}}},
          {.zero_stage = GetParam(),
           .optimizer = Sgd{.lr = 1.0f},
           .clip_norm = 1.0,
           .clip_kind = c.kind,
           .clip_power = c.power});
      std::vector<double> three(128, 0.0), four(128, 0.0);
      three[5] = 3;
      four[9] = 4;
      give(dp, 1, four);
      give(dp, 0, three);
      dp.step({}, kCpu);
      EXPECT_DOUBLE_EQ(dp.wait_reports().at(0).norm, c.norm);
      EXPECT_FLOAT_EQ(dp.read_weight(0)[5], static_cast<float>(-3 / c.norm));
      EXPECT_FLOAT_EQ(dp.read_weight(1)[9], static_cast<float>(-4 / c.norm));
    });
}

TEST_P(StepAtStage, ATiedWeightEntersTheNormOnce) {
  run_ranks(2, [&](World& world) {
    DataParallel dp(world,
                    {{.name = "w", .shape = {2}},
                     {.name = "head", .shape = {2}, .tied_to = "w"}},
                    {.zero_stage = GetParam()});
    give(dp, 1, {1, 2});
    give(dp, 0, {2, 2});
    dp.step({}, kCpu);
    EXPECT_DOUBLE_EQ(dp.wait_reports().at(0).norm, 5.0);
  });
}

TEST_P(StepAtStage, ANonFiniteGradientSkipsTheStepOnEveryRank) {
  run_ranks(2, [&](World& world) {
    const std::vector<ParameterSpec> specs{
        {.name = "a", .shape = {40}, .dtype = DType::kBFloat16},
        {.name = "b", .shape = {40}, .dtype = DType::kBFloat16}};
    DataParallel dp(world, specs,
                    {.zero_stage = GetParam(),
                     .precision = Precision::bf16(),
                     .clip_norm = 1.0});
    dp.initialize([](int, std::span<float> w) {
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.01f * i;
    });
    // The same steps without the bad one must end at the same bits.
    DataParallel clean(world, specs,
                       {.zero_stage = GetParam(),
                        .precision = Precision::bf16(),
                        .clip_norm = 1.0});
    clean.initialize([](int, std::span<float> w) {
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.01f * i;
    });
    for (int step = 0; step < 5; ++step) {
      std::vector<double> values(40, 0.5 * step + world.rank());
      if (step != 3)
        for (const int p : {1, 0}) give(clean, p, values);
      if (step != 3) clean.step({}, kCpu);
      give(dp, 1, values);
      if (step == 3 && world.rank() == 1) values[17] = kInfinity;
      give(dp, 0, values);
      dp.step({}, kCpu);
    }
    const auto reports = dp.wait_reports();
    ASSERT_EQ(reports.size(), 5u);
    EXPECT_FALSE(reports[3].applied);
    EXPECT_EQ(reports[4].skipped_steps, 1);
    for (const int step : {0, 1, 2, 4}) EXPECT_TRUE(reports[step].applied);
    for (const int p : {0, 1}) {
      EXPECT_EQ(dp.read_weight(p), clean.read_weight(p));
      EXPECT_EQ(values_of(dp.weight(p)), values_of(clean.weight(p)));
    }
  });
}

std::vector<std::string> errors_of_non_finite(int stage, bool in_loss,
                                              NonFiniteAction action,
                                              int allowed) {
  std::vector<std::string> errors(3, "nothing was thrown");
  run_ranks(3, [&](World& world) {
    DataParallel dp(
        world,
        {{.name = "first", .shape = {7}}, {.name = "second", .shape = {300}}},
        {.zero_stage = stage,
         .non_finite = action,
         .max_skipped_in_a_row = allowed});
    try {
      for (int step = 0; step < 4; ++step) {
        std::vector<double> second(300, 1.0);
        if (!in_loss && world.rank() == 1) second[222] = std::nan("");
        give(dp, 1, second);
        give(dp, 0, std::vector<double>(7, 1.0));
        dp.step({.loss = in_loss && world.rank() == 2 ? kInfinity : 1.0}, kCpu);
      }
    } catch (const NonFinite& error) {
      errors[world.rank()] = error.what();
    }
  });
  return errors;
}

TEST_P(StepAtStage, ANonFiniteGradientRaisesByOptionAndNamesTheParameter) {
  for (const std::string& error :
       errors_of_non_finite(GetParam(), false, NonFiniteAction::kRaise, 100))
    EXPECT_THAT(error,
                AllOf(HasSubstr("step 0"), HasSubstr("'second' float32[300]"),
                      HasSubstr("seen by rank")));
}

TEST_P(StepAtStage, ANonFiniteLossIsNamedWithItsRank) {
  for (const std::string& error :
       errors_of_non_finite(GetParam(), true, NonFiniteAction::kRaise, 100))
    EXPECT_THAT(error, HasSubstr("the loss is infinite or NaN on rank 2"));
}

TEST_P(StepAtStage, TooManySkippedStepsInARowAreAnError) {
  for (const std::string& error :
       errors_of_non_finite(GetParam(), false, NonFiniteAction::kSkip, 2))
    EXPECT_THAT(error, AllOf(HasSubstr("step 2"),
                             HasSubstr("3 steps were skipped in a row, where "
                                       "max_skipped_in_a_row is 2")));
}

TEST_P(StepAtStage, OneRanksWishToStopStopsAllAfterTheSameStep) {
  run_ranks(3, [&](World& world) {
    DataParallel dp(world, {{.name = "a"}}, {.zero_stage = GetParam()});
    int steps = 0;
    while (!dp.should_stop() && steps < 10) {
      give(dp, 0, {1.0});
      dp.step({.request_stop = world.rank() == 1 && steps == 4}, kCpu);
      ++steps;
    }
    EXPECT_EQ(steps, 5);
  });
}

TEST(Drift, AReplicaThatDriftsIsNamed) {
  std::vector<std::string> errors(3);
  run_ranks(3, [&](World& world) {
    DataParallel dp(world, {{.name = "a", .shape = {100}}},
                    {.drift_check_interval = 2});
    try {
      for (int step = 0; step < 6; ++step) {
        if (step == 2 && world.rank() == 2) dp.weight(0).as<float>()[70] = 9;
        give(dp, 0, std::vector<double>(100, 1.0));
        dp.step({}, kCpu);
      }
    } catch (const CorruptData& error) {
      errors[world.rank()] = error.what();
    }
  });
  for (const std::string& error : errors)
    EXPECT_THAT(error,
                AllOf(HasSubstr("step 3"), HasSubstr("the weights of rank 2")));
}

TEST(Drift, GathersOfTheOwnersSlicesHealAReplica) {
  run_ranks(3, [&](World& world) {
    DataParallel dp(world, {{.name = "a", .shape = {100}}},
                    {.zero_stage = 1, .drift_check_interval = 2});
    for (int step = 0; step < 4; ++step) {
      if (step == 2 && world.rank() == 2) dp.weight(0).as<float>()[70] = 9;
      give(dp, 0, std::vector<double>(100, 1.0));
      dp.step({}, kCpu);
    }
    EXPECT_NEAR(values_of(dp.weight(0))[70], -4e-3, 1e-5);
  });
}

TEST_P(StepAtStage, TheLossIsTheMeanOverRanks) {
  run_ranks(3, [&](World& world) {
    DataParallel dp(world, {{.name = "a"}}, {.zero_stage = GetParam()});
    give(dp, 0, {1.0});
    dp.step({.loss = 1.0 + world.rank()}, kCpu);
    EXPECT_DOUBLE_EQ(dp.wait_reports().at(0).loss, 2.0);
    const float on_device = static_cast<float>(world.rank());
    give(dp, 0, {1.0});
    dp.step({.device_loss = &on_device}, kCpu);
    EXPECT_DOUBLE_EQ(dp.wait_reports().at(0).loss, 1.0);
    const double metrics[] = {1.0 * world.rank(), 6.0};
    EXPECT_THAT(dp.average(metrics), testing::ElementsAre(1.0, 6.0));
  });
}

}  // namespace
}  // namespace ddp::test
