// DataParallel on GPUs over NCCL, on as many as the launcher starts ranks.
#include <gmock/gmock.h>

#include <cmath>

#include "libddp/device/stream.h"
#include "tests/support/training.h"

namespace ddp::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

World& world() {
  static World value = init({.device = "cuda"});
  return value;
}

/// Writes `values` to the gradient on `stream` as backward would.
void give_on_device(DataParallel& dp, int p, const std::vector<float>& values,
                    StreamView stream) {
  const GradientTarget target = dp.grad(p, stream);
  ASSERT_FALSE(target.accumulate);
  copy_bytes(target.tensor.data, values.data(), values.size() * sizeof(float),
             stream);
  dp.grad_ready(p, stream);
}

class EngineAtStage : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, EngineAtStage, testing::Values(0, 1));

TEST_P(EngineAtStage, TrainsAsADoublePrecisionWriting) {
  const std::vector<ParameterSpec> specs{
      {.name = "odd", .shape = {101}, .dtype = DType::kBFloat16},
      {.name = "scalar", .dtype = DType::kBFloat16},
      {.name = "empty", .shape = {0}, .dtype = DType::kBFloat16},
      {.name = "wide", .shape = {100'003}, .dtype = DType::kFloat32}};
  const AdamW adam{.lr = 0.01f, .weight_decay = 0.1f};
  DataParallel dp(world(), specs,
                  {.zero_stage = GetParam(),
                   .precision = Precision::bf16(),
                   .optimizer = adam,
                   .clip_norm = 1.0,
                   .bucket_bytes = 1024});
  fill_ones(dp);
  Stream stream(world().device());
  std::vector<ReferenceParameter> reference;
  for (const auto& spec : specs)
    reference.emplace_back(std::vector<double>(numel(spec), 1.0));
  const int size = world().size();
  for (int step = 0; step < 5; ++step) {
    double squares = 0;
    std::vector<double> means;
    for (int p = 0; p < 4; ++p) {
      means.push_back(0.25 * (p + 1 + step) + 0.5 * (size - 1));
      squares += numel(specs[p]) * means[p] * means[p];
    }
    for (int p = 3; p >= 0; --p) {
      const float mine = 0.25f * (p + 1 + step) + world().rank();
      give_on_device(dp, p, std::vector<float>(numel(specs[p]), mine), stream);
      const double clipped = means[p] / std::sqrt(squares);
      reference[p].update(adam, std::vector<double>(numel(specs[p]), clipped));
    }
    dp.step({.loss = 1.0}, stream);
  }
  for (const StepReport& report : dp.wait_reports()) {
    EXPECT_TRUE(report.applied);
    EXPECT_EQ(report.loss, 1.0);
  }
  for (int p = 0; p < 4; ++p)
    for (const float w : dp.read_weight(p))
      ASSERT_NEAR(w, reference[p].weight[0], 1e-5) << specs[p].name;
}

TEST_P(EngineAtStage, GradientsOfSideStreamsAreWaitedFor) {
  DataParallel dp(
      world(),
      {{.name = "a", .shape = {1 << 20}}, {.name = "b", .shape = {1 << 20}}},
      {.zero_stage = GetParam(), .optimizer = Sgd{.lr = 1.0f}});
  Stream main(world().device()), side(world().device());
  const std::vector<float> ones(1 << 20, 1.0f);
  for (int step = 0; step < 10; ++step) {
    give_on_device(dp, 1, ones, side);
    give_on_device(dp, 0, ones, main);
    dp.step({}, main);
  }
  synchronize(main);
  for (const int p : {0, 1})
    EXPECT_THAT(dp.read_weight(p), testing::Each(-10.0f));
}

TEST(Engine, OperationsThatDifferAreFoundByTheVoteBeforeTheUpdate) {
  if (world().size() == 1) GTEST_FAIL() << "needs two ranks";
  DataParallel dp(world(), {{.name = "a", .shape = {8}}});
  Stream stream(world().device());
  Buffer data = Buffer::allocate(1024, world().device());
  dp.communicator()
      .all_reduce(data.view(0, 256, DType::kFloat32),
                  world().rank() == 0 ? ReduceOp::kSum : ReduceOp::kMax, stream)
      .block(stream);
  const std::string text = error_of<InvalidArgument>([&] {
    give_on_device(dp, 0, std::vector<float>(8, 1.0f), stream);
    dp.step({}, stream);
    (void)dp.wait_reports();
  });
  EXPECT_THAT(text, AllOf(HasSubstr("all_reduce(sum) of 256 float32"),
                          HasSubstr("all_reduce(max) of 256 float32"),
                          HasSubstr("the update was not applied")));
}

}  // namespace
}  // namespace ddp::test
