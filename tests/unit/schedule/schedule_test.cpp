#include "libddp/optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/core/error.h"

namespace ddp {
namespace {

using ::testing::HasSubstr;

std::string text_of(const Schedule& schedule) {
  try {
    schedule.check();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Schedule, ConstantIsOneForever) {
  const Schedule schedule{.decay = Decay::kConstant};
  schedule.check();
  for (const std::int64_t step : {0L, 1L, 1'000'000'000'000L})
    EXPECT_EQ(schedule.factor(step), 1.0);
}

TEST(Schedule, LinearWarmupClimbsByEqualSteps) {
  const Schedule schedule{.decay = Decay::kConstant, .warmup_steps = 4};
  EXPECT_EQ(schedule.factor(0), 0.0);
  EXPECT_EQ(schedule.factor(1), 0.25);
  EXPECT_EQ(schedule.factor(3), 0.75);
  EXPECT_EQ(schedule.factor(4), 1.0);
  EXPECT_EQ(schedule.factor(5), 1.0);
}

TEST(Schedule, WarmupMayStartAboveZero) {
  const Schedule schedule{
      .decay = Decay::kConstant, .warmup_steps = 4, .warmup_start = 0.5};
  EXPECT_EQ(schedule.factor(0), 0.5);
  EXPECT_EQ(schedule.factor(2), 0.75);
  EXPECT_EQ(schedule.factor(4), 1.0);
}

TEST(Schedule, LogarithmicWarmupIsDeepSpeeds) {
  // WarmupLR: log(step + 1) / log(warmup_num_steps), 1 from there on.
  const Schedule schedule{.decay = Decay::kConstant,
                          .warmup_steps = 16,
                          .warmup = Warmup::kLogarithmic};
  EXPECT_EQ(schedule.factor(0), 0.0);
  EXPECT_DOUBLE_EQ(schedule.factor(1), 0.25);
  EXPECT_DOUBLE_EQ(schedule.factor(3), 0.5);
  EXPECT_DOUBLE_EQ(schedule.factor(7), 0.75);
  EXPECT_EQ(schedule.factor(15), 1.0);
  EXPECT_EQ(schedule.factor(16), 1.0);
}

TEST(Schedule, LogarithmicWarmupOfOneStepIsFinite) {
  const Schedule schedule{.decay = Decay::kConstant,
                          .warmup_steps = 1,
                          .warmup = Warmup::kLogarithmic};
  EXPECT_EQ(schedule.factor(0), 0.0);
  EXPECT_EQ(schedule.factor(1), 1.0);
}

TEST(Schedule, LinearDecayEndsAtTheFinalFactor) {
  const Schedule schedule{.decay = Decay::kLinear,
                          .total_steps = 10,
                          .warmup_steps = 2,
                          .final_factor = 0.5};
  schedule.check();
  EXPECT_EQ(schedule.factor(0), 0.0);
  EXPECT_EQ(schedule.factor(1), 0.5);
  EXPECT_EQ(schedule.factor(2), 1.0);
  EXPECT_EQ(schedule.factor(6), 0.75);
  EXPECT_EQ(schedule.factor(9), 0.5625);  // the last update
  EXPECT_EQ(schedule.factor(10), 0.5);
  EXPECT_EQ(schedule.factor(1000), 0.5);
}

TEST(Schedule, CosineDecayHasItsHalfwayPointInTheMiddle) {
  const Schedule schedule{.decay = Decay::kCosine,
                          .total_steps = 12,
                          .warmup_steps = 4,
                          .final_factor = 0.25};
  schedule.check();
  EXPECT_EQ(schedule.factor(4), 1.0);
  EXPECT_DOUBLE_EQ(schedule.factor(6), 0.25 + 0.75 * (2 + std::sqrt(2)) / 4);
  EXPECT_EQ(schedule.factor(8), 0.625);
  EXPECT_DOUBLE_EQ(schedule.factor(10), 0.25 + 0.75 * (2 - std::sqrt(2)) / 4);
  EXPECT_GT(schedule.factor(11), 0.25);
  EXPECT_EQ(schedule.factor(12), 0.25);
  EXPECT_EQ(schedule.factor(13), 0.25);
}

TEST(Schedule, WithoutWarmupBeginsAtOne) {
  for (const Decay decay : {Decay::kLinear, Decay::kCosine}) {
    const Schedule schedule{.decay = decay, .total_steps = 1};
    EXPECT_EQ(schedule.factor(0), 1.0);
    EXPECT_EQ(schedule.factor(1), 0.0);
  }
}

TEST(Schedule, WarmupMayFillTheWholeRun) {
  const Schedule schedule{
      .decay = Decay::kCosine, .total_steps = 4, .warmup_steps = 4};
  schedule.check();
  EXPECT_EQ(schedule.factor(3), 0.75);
  EXPECT_EQ(schedule.factor(4), 0.0);
}

TEST(Schedule, CountsStepsBeyondThirtyTwoBits) {
  const Schedule schedule{.decay = Decay::kLinear,
                          .total_steps = std::int64_t{1} << 40};
  EXPECT_EQ(schedule.factor(std::int64_t{1} << 39), 0.5);
}

TEST(Schedule, NamesBadFields) {
  EXPECT_THAT(text_of({.decay = Decay::kCosine}),
              HasSubstr("total_steps is 0, but cosine decay"));
  EXPECT_THAT(text_of({.total_steps = -3}), HasSubstr("total_steps is -3"));
  EXPECT_THAT(text_of({.total_steps = 5, .warmup_steps = 6}),
              HasSubstr("warmup_steps is 6, more than total_steps, 5"));
  EXPECT_THAT(text_of({.total_steps = 5, .warmup_steps = -1}),
              HasSubstr("warmup_steps is -1"));
  EXPECT_THAT(text_of({.total_steps = 5, .warmup_start = -0.5}),
              HasSubstr("warmup_start is -0.5"));
  EXPECT_THAT(
      text_of({.total_steps = 5,
               .final_factor = std::numeric_limits<double>::infinity()}),
      HasSubstr("final_factor is inf"));
}

TEST(Schedule, NamesAreReadBack) {
  for (const Decay decay : {Decay::kConstant, Decay::kLinear, Decay::kCosine})
    EXPECT_EQ(parse_decay(name(decay)), decay);
  try {
    parse_decay("step");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("\"step\" is not known; choose constant, linear"));
  }
}

TEST(ScaleRate, FollowsTheGlobalBatch) {
  // Goyal et al.: 0.1 at 256 images becomes 3.2 at 8192.
  EXPECT_DOUBLE_EQ(scale_rate(0.1, 256, 8192, RateScaling::kLinear), 3.2);
  EXPECT_DOUBLE_EQ(scale_rate(0.1, 256, 128, RateScaling::kLinear), 0.05);
  EXPECT_DOUBLE_EQ(scale_rate(0.5, 64, 1024, RateScaling::kSquareRoot), 2.0);
  EXPECT_EQ(scale_rate(0.1, 256, 8192, RateScaling::kNone), 0.1);
}

TEST(ScaleRate, RefusesAnEmptyBatch) {
  EXPECT_THROW(scale_rate(0.1, 0, 8, RateScaling::kLinear), InvalidArgument);
  EXPECT_THROW(scale_rate(0.1, 8, -1, RateScaling::kNone), InvalidArgument);
}

}  // namespace
}  // namespace ddp
