// What a gradient is after reduction, case by case: unused, shared, skipped,
// accumulated, weighted, uneven, frozen, tiny and empty ones.
#include <gmock/gmock.h>

#include <cmath>

#include "kernels/core/half.h"
#include "tests/support/ranks.h"
#include "tests/support/training.h"

namespace ddp::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const StreamView kCpu = StreamView::cpu();

class GradientsAtStage : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, GradientsAtStage, testing::Values(0, 1));

TEST_P(GradientsAtStage,
       AnUnusedParameterIsAnErrorThatNamesItAtTheEndOfBackward) {
  run_ranks(2, [&](World& world) {
    DataParallel dp(world, scalars({"a", "b"}), {.zero_stage = GetParam()});
    fill_ones(dp);
    give(dp, 0, {world.rank() + 1.0});
    EXPECT_THAT(error_of<InvalidArgument>([&] { dp.finish_backward(kCpu); }),
                HasSubstr("1 of 2 parameters: 'b' float32[]"));
    // Nothing was lost: the next step works.
    dp.zero_grad(kCpu);
    give(dp, 0, {world.rank() + 1.0});
    give(dp, 1, {1.0});
    dp.step({}, kCpu);
  });
}

TEST_P(GradientsAtStage, AnUnusedParameterMayBeAllowedAndIsLeftAlone) {
  run_ranks(2, [&](World& world) {
    DataParallel dp(world, scalars({"a", "b"}),
                    {.zero_stage = GetParam(),
                     .optimizer = Sgd{.lr = 1.0f, .weight_decay = 0.1f},
                     .find_unused_parameters = true});
    fill_ones(dp);
    give(dp, 0, {world.rank() + 1.0});
    dp.finish_backward(kCpu);
    EXPECT_THAT(dp.read_gradient(0), ElementsAre(1.5f));
    dp.step({}, kCpu);
    EXPECT_NEAR(dp.read_weight(0)[0], 1 - (1.5 + 0.1), 1e-6);
    EXPECT_EQ(dp.read_weight(1)[0], 1.0f);  // neither decayed nor stepped
  });
}

TEST_P(GradientsAtStage, AParameterThatOneRankUsedCountsAsZeroOnTheOther) {
  run_ranks(2, [&](World& world) {
    DataParallel dp(world, scalars({"a", "b"}),
                    {.zero_stage = GetParam(), .find_unused_parameters = true});
    fill_ones(dp);
    if (world.rank() == 0) give(dp, 1, {3.0});
    give(dp, 0, {1.0});
    dp.finish_backward(kCpu);
    EXPECT_THAT(dp.read_gradient(0), ElementsAre(1.0f));
    EXPECT_THAT(dp.read_gradient(1), ElementsAre(1.5f));
  });
}

TEST_P(GradientsAtStage, UnusedParametersKeepTheirOwnOptimizerClock) {
  run_ranks(2, [&](World& world) {
    const AdamW adam{.lr = 0.1f, .weight_decay = 0};
    DataParallel dp(world, scalars({"a", "late"}),
                    {.zero_stage = GetParam(),
                     .optimizer = adam,
                     .find_unused_parameters = true});
    fill_ones(dp);
    ReferenceParameter late({1.0});
    for (int step = 0; step < 4; ++step) {
      if (step >= 2) {
        give(dp, 1, {0.5 + step});
        late.update(adam, {0.5 + step});
      }
      give(dp, 0, {1.0});
      dp.step({}, kCpu);
    }
    EXPECT_NEAR(dp.read_weight(1)[0], late.weight[0], 1e-6);
  });
}

TEST_P(GradientsAtStage, ForwardsBeforeOneBackwardAddUp) {
  run_ranks(2, [&](World& world) {
    DataParallel dp(world, scalars({"a", "b", "c", "shared"}),
                    {.zero_stage = GetParam()});
    for (const int p : {2, 1, 0}) give(dp, p, {1.0});
    write_gradient(dp, 3, {1.0});  // reached through two forwards
    give(dp, 3, {1.0});
    dp.finish_backward(kCpu);
    for (const int p : {0, 1, 2})
      EXPECT_THAT(dp.read_gradient(p), ElementsAre(1.0f));
    EXPECT_THAT(dp.read_gradient(3), ElementsAre(2.0f));
  });
}

TEST_P(GradientsAtStage, ATiedParameterIsReadyWhenAllThatShareItAre) {
  run_ranks(2, [&](World& world) {
    DataParallel dp(world,
                    {{.name = "embedding", .shape = {7, 4}},
                     {.name = "head", .shape = {7, 4}, .tied_to = "embedding"}},
                    {.zero_stage = GetParam()});
    fill_ones(dp);
    const AdamW adam;
    ReferenceParameter reference(std::vector<double>(28, 1.0));
    for (int step = 0; step < 3; ++step) {
      give(dp, 1, std::vector<double>(28, 1.0 + world.rank()));
      EXPECT_TRUE(dp.overlap().buckets.empty());  // not launched yet
      give(dp, 0, std::vector<double>(28, 2.0));
      dp.step({}, kCpu);
      reference.update(adam, std::vector<double>(28, 3.5));
    }
    EXPECT_EQ(dp.weight(0).data, dp.weight(1).data);
    EXPECT_NEAR(dp.read_weight(1)[27], reference.weight[27], 1e-6);
  });
}

TEST_P(GradientsAtStage, AnUnfrozenParameterIsPickedUp) {
  run_ranks(2, [&](World& world) {
    const Sgd sgd{.lr = 1.0f, .momentum = 0.5f};
    DataParallel dp(world,
                    {{.name = "a"},
                     {.name = "adapter", .shape = {3}, .requires_grad = false}},
                    {.zero_stage = GetParam(), .optimizer = sgd});
    fill_ones(dp);
    ReferenceParameter adapter({1, 1, 1});
    for (int step = 0; step < 4; ++step) {
      if (step == 2) {
        EXPECT_THAT(error_of<InvalidArgument>([&] { dp.grad(1, kCpu); }),
                    HasSubstr("'adapter' float32[3] frozen"));
        dp.unfreeze(1);
      }
      if (step >= 2) {
        give(dp, 1, std::vector<double>(3, 1.0 + world.rank()));
        adapter.update(sgd, {1.5, 1.5, 1.5});
      }
      give(dp, 0, {1.0});
      dp.step({}, kCpu);
    }
    EXPECT_NEAR(dp.read_weight(1)[2], adapter.weight[2], 1e-6);
    EXPECT_NEAR(values_of(dp.weight(1))[2], adapter.weight[2], 1e-6);
  });
}

TEST_P(GradientsAtStage, EveryTypeKeepsItsOwn) {
  run_ranks(3, [&](World& world) {
    const std::vector<ParameterSpec> specs{
        {.name = "a", .shape = {7}},
        {.name = "b", .shape = {13}, .dtype = DType::kBFloat16},
        {.name = "c", .shape = {1}},
        {.name = "d", .shape = {5}, .dtype = DType::kBFloat16},
        {.name = "e", .shape = {3}, .dtype = DType::kFloat64}};
    DataParallel dp(world, specs,
                    {.zero_stage = GetParam(),
                     .precision = Precision::bf16(),
                     .optimizer = Sgd{.lr = 1.0f}});
    fill_ones(dp);
    for (int p = 4; p >= 0; --p) {
      EXPECT_EQ(dp.grad(p, kCpu).tensor.dtype,
                p == 4 ? DType::kFloat64 : DType::kFloat32);
      give(dp, p, std::vector<double>(numel(specs[p]), 0.25 * world.rank()));
    }
    dp.step({}, kCpu);
    for (int p = 0; p < 5; ++p) {
      EXPECT_EQ(dp.weight(p).dtype, specs[p].dtype);
      for (const double weight : values_of(dp.weight(p)))
        EXPECT_EQ(weight, 0.75);
    }
  });
}

TEST_P(GradientsAtStage, EmptyAndTinyParametersTrain) {
  for (const int size : {1, 2, 8})
    run_ranks(size, [&](World& world) {
      const std::vector<ParameterSpec> specs{
          {.name = "eight", .shape = {8}},  {.name = "none", .shape = {0}},
          {.name = "many", .shape = {24}},  {.name = "scalar", .shape = {}},
          {.name = "single", .shape = {1}}, {.name = "last", .shape = {0, 4}}};
      DataParallel dp(world, specs,
                      {.zero_stage = GetParam(), .clip_norm = 100});
      fill_ones(dp);
      for (int p = 5; p >= 0; --p)
        give(dp, p, std::vector<double>(numel(specs[p]), 1.0));
      dp.step({}, kCpu);
      const auto report = dp.wait_reports().at(0);
      EXPECT_DOUBLE_EQ(report.norm, std::sqrt(34.0));
      for (const int p : {0, 2, 3, 4})
        for (const double w : values_of(dp.weight(p)))
          EXPECT_NEAR(w, 1 - 1e-3 - 1e-5, 1e-6);
      EXPECT_TRUE(dp.read_weight(1).empty());
      EXPECT_EQ(dp.parameter(5).shape, (std::vector<std::int64_t>{0, 4}));
    });
}

TEST_P(GradientsAtStage, BackwardMayFinishGradientsInAnyOrder) {
  run_ranks(3, [&](World& world) {
    DataParallel dp(world,
                    {{.name = "a", .shape = {500}},
                     {.name = "b", .shape = {500}},
                     {.name = "c", .shape = {500}}},
                    {.zero_stage = GetParam(), .bucket_bytes = 2000});
    for (int step = 0; step < 5; ++step) {
      // Another order in every step and on every rank.
      for (int i = 0; i < 3; ++i) {
        const int p = (i * 2 + step + world.rank()) % 3;
        give(dp, p, std::vector<double>(500, p + world.rank()));
      }
      dp.finish_backward(kCpu);
      for (int p = 0; p < 3; ++p)
        EXPECT_THAT(dp.read_gradient(p), testing::Each(p + 1.0f));
      dp.step({}, kCpu);
    }
  });
}

TEST(Gradients, LargeFp16AndTinyOnesSurviveTheSum) {
  run_ranks(8, [&](World& world) {
    DataParallel dp(world, {{.name = "large", .dtype = DType::kFloat16},
                            {.name = "tiny", .dtype = DType::kFloat16}});
    give(dp, 1, {1e-7});
    give(dp, 0, {10000.0});
    dp.finish_backward(kCpu);
    EXPECT_EQ(dp.read_gradient(0)[0], 10000.0f);
    EXPECT_EQ(to_float16(dp.read_gradient(1)[0]).bits, to_float16(1e-7f).bits);
  });
}

TEST_P(GradientsAtStage, BucketsLeaveBeforeBackwardEndsFromTheFirstStep) {
  run_ranks(2, [&](World& world) {
    std::vector<ParameterSpec> layers;
    for (int i = 0; i < 24; ++i)
      layers.push_back({.name = concat("layer", i), .shape = {256, 256}});
    DataParallel dp(world, layers, {.zero_stage = GetParam()});
    for (int step = 0; step < 3; ++step) {
      for (int p = 23; p >= 0; --p) {
        if (p == 0) {  // all but the last layer is done
          const OverlapStatistics overlap = dp.overlap();
          EXPECT_GE(overlap.bytes_launched_early * 10, 24 * 65536 * 4 * 8);
        }
        give(dp, p, std::vector<double>(65536, 1.0));
      }
      dp.step({}, kCpu);
    }
  });
}

TEST(Gradients, GradReadyWithoutGradIsRefused) {
  run_ranks(1, [](World& world) {
    DataParallel dp(world, scalars({"a"}));
    EXPECT_THAT(error_of<InvalidArgument>([&] { dp.grad_ready(0, kCpu); }),
                HasSubstr("never written"));
    EXPECT_THAT(error_of<InvalidArgument>([&] { dp.grad(1, kCpu); }),
                HasSubstr("parameter 1 of 1 does not exist"));
  });
}

TEST_P(GradientsAtStage, AdoptedMemoryStaysTheCallers) {
  std::vector<std::vector<float>> weights(2, std::vector<float>(3, 1.0f));
  run_ranks(2, [&](World& world) {
    std::vector<float>& weight = weights[world.rank()];
    std::vector<float> gradient(3);
    DataParallel dp(world,
                    {{.name = "library", .shape = {2}},
                     {.name = "caller",
                      .shape = {3},
                      .adopted_weight = weight.data(),
                      .adopted_gradient = gradient.data()}},
                    {.zero_stage = GetParam(), .optimizer = Sgd{.lr = 1.0f}});
    dp.broadcast_weights();
    EXPECT_EQ(dp.weight(1).data, weight.data());
    gradient.assign(3, world.rank() + 1.0f);
    dp.grad_ready(1, kCpu);
    give(dp, 0, {1, 1});
    dp.finish_backward(kCpu);
    if (GetParam() == 0) {
      EXPECT_THAT(gradient, testing::Each(1.5f));
    }
    dp.step({}, kCpu);
  });
  for (const auto& weight : weights) EXPECT_THAT(weight, testing::Each(-0.5f));
}

}  // namespace
}  // namespace ddp::test
