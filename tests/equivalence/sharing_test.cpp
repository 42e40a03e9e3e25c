// Groups, schedules and options, and what bad ones are told.
#include <gmock/gmock.h>

#include "tests/support/ranks.h"
#include "tests/support/training.h"

namespace ddp::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const StreamView kCpu = StreamView::cpu();

class GroupsAtStage : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, GroupsAtStage, testing::Values(0, 1));

TEST_P(GroupsAtStage, GroupsHaveTheirOwnHyperParametersAndStayLive) {
  run_ranks(3, [&](World& world) {
    const std::vector<ParameterSpec> specs{{.name = "w1", .shape = {50}},
                                           {.name = "b2", .shape = {9}},
                                           {.name = "w3", .shape = {301}},
                                           {.name = "w2", .shape = {20}}};
    AdamW heavy{.lr = 0.1f, .weight_decay = 0.1f};
    const AdamW light{.lr = 0.01f, .weight_decay = 0};
    DataParallel dp(
        world, specs,
        {.zero_stage = GetParam(),
         .optimizer = heavy,
         .groups = {
             {{"w1", "w3"}, heavy}, {{"b2", "w2"}, light}, {{}, light}}});
    std::vector<ReferenceParameter> reference;
    for (const auto& spec : specs)
      reference.emplace_back(std::vector<double>(numel(spec), 1.0));
    dp.initialize(
        [](int, std::span<float> w) { std::fill(w.begin(), w.end(), 1.0f); });
    ASSERT_EQ(dp.hyper_parameters().size(), 4u);
    for (int step = 0; step < 4; ++step) {
      if (step == 2) {  // what a scheduler does
        heavy.lr = 0.05f;
        std::get<AdamW>(dp.hyper_parameters()[1]).lr = 0.05f;
      }
      for (int p = 3; p >= 0; --p) {
        const double g = 0.25 * (p + 1) + 0.5 * step;
        give(dp, p, std::vector<double>(numel(specs[p]), g));
        reference[p].update(p == 0 || p == 2 ? heavy : light,
                            std::vector<double>(numel(specs[p]), g));
      }
      dp.step({}, kCpu);
    }
    for (int p = 0; p < 4; ++p)
      for (const float w : dp.read_weight(p))
        ASSERT_NEAR(w, reference[p].weight[0], 1e-6) << specs[p].name;
  });
}

TEST_P(GroupsAtStage, TheRateOfAStepIsItsFactorTimesTheGroups) {
  run_ranks(2, [&](World& world) {
    DataParallel dp(world, {{.name = "a"}},
                    {.zero_stage = GetParam(), .optimizer = Sgd{.lr = 0.5f}});
    give(dp, 0, {1.0});
    dp.step({.lr_factor = 0.25}, kCpu);
    EXPECT_EQ(dp.read_weight(0)[0], -0.125f);
    EXPECT_DOUBLE_EQ(dp.wait_reports().at(0).lr, 0.125);
  });
}

std::string refusal(DataParallelOptions options,
                    std::vector<ParameterSpec> specs = {{.name = "weight"},
                                                        {.name = "bias"}}) {
  std::string text = "accepted";
  run_ranks(1, [&](World& world) {
    try {
      DataParallel dp(world, specs, options);
    } catch (const InvalidArgument& error) {
      text = error.what();
    }
  });
  return text;
}

TEST(Options, BadOnesAreNamedWithTheirValue) {
  EXPECT_THAT(refusal({.zero_stage = 7}), HasSubstr("zero_stage is 7"));
  EXPECT_THAT(refusal({.clip_norm = -1}), HasSubstr("clip_norm is -1"));
  EXPECT_THAT(refusal({.clip_kind = NormKind::kPower, .clip_power = 0}),
              HasSubstr("clip_power is 0"));
  EXPECT_THAT(refusal({.bucket_bytes = 0}), HasSubstr("bucket_bytes is 0"));
  EXPECT_THAT(refusal({.max_steps_in_flight = 0}),
              HasSubstr("max_steps_in_flight is 0"));
  EXPECT_THAT(refusal({.groups = {{{"wieght"}, AdamW{}}}}),
              AllOf(HasSubstr("no parameter 'wieght'"), HasSubstr("'weight'")));
  EXPECT_THAT(refusal({.groups = {{{"bias"}, AdamW{}}, {{"bias"}, AdamW{}}}}),
              HasSubstr("'bias' is in parameter groups 0 and 1"));
  EXPECT_THAT(refusal({.groups = {{{"bias"}, Sgd{}}}}),
              AllOf(HasSubstr("SGD"), HasSubstr("AdamW")));
  EXPECT_THAT(refusal({.backend = "smoke"}), HasSubstr("smoke"));
}

TEST(Options, DifferentModelsAreNamedOnEveryRank) {
  std::vector<std::string> errors(2);
  run_ranks(2, [&](World& world) {
    try {
      DataParallel dp(
          world,
          {{.name = "emb", .shape = {world.rank() == 0 ? 100 : 10000, 500}}});
    } catch (const InvalidArgument& error) {
      errors[world.rank()] = error.what();
    }
  });
  for (const std::string& error : errors)
    EXPECT_THAT(error,
                AllOf(HasSubstr("parameter 0"), HasSubstr("float32[100, 500]"),
                      HasSubstr("float32[10000, 500]")));
}

TEST(Checked, OperationsThatDifferAreShownBeforeTheyRun) {
  std::vector<std::string> errors(2);
  run_ranks(2, [&](World& world) {
    DataParallel dp(world, {{.name = "a"}}, {.checked = true});
    std::vector<float> data(409600);
    const std::int64_t count = world.rank() == 0 ? 409600 : 409598;
    try {
      dp.communicator()
          .all_reduce({data.data(), count, DType::kFloat32, {}}, ReduceOp::kSum,
                      kCpu)
          .block(kCpu);
    } catch (const InvalidArgument& error) {
      errors[world.rank()] = error.what();
    }
  });
  for (const std::string& error : errors)
    EXPECT_THAT(error, AllOf(HasSubstr("409600"), HasSubstr("409598")));
}

TEST(Startup, TenThousandParametersAreReadyWithinASecond) {
  std::vector<ParameterSpec> specs;
  for (int i = 0; i < 10000; ++i)
    specs.push_back({.name = concat("p", i), .shape = {256}});
  const auto begin = std::chrono::steady_clock::now();
  run_ranks(8, [&](World& world) {
    DataParallel dp(world, specs);
    dp.broadcast_weights();
  });
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  RecordProperty("seconds", std::to_string(took.count()));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(took.count(), 8.0);  // 8 ranks share the cores of one test machine
#endif
}

}  // namespace
}  // namespace ddp::test
