// The suites on the CPU, and what is true of the CPU alone.
#include <algorithm>
#include <cmath>

#include "examples/gpt/model/parameters.h"
#include "examples/gpt/ops/cpu/threads.h"
#include "tests/unit/gpt/model_suite.h"
#include "tests/unit/gpt/ops_suite.h"

namespace gpt {
namespace {

constexpr auto kFp32 = ddp::DType::kFloat32;
constexpr auto kBf16 = ddp::DType::kBFloat16;
constexpr ddp::Device kCpu = ddp::Device::cpu();

// Sizes that fill no register, tile or block evenly, and one that does.
INSTANTIATE_TEST_SUITE_P(
    Cpu, OpsTest,
    ::testing::Values(
        OpsCase{"fp32_odd", kCpu, kFp32, kFp32, {2, 37, 3, 5}, 131},
        OpsCase{"fp32_tiny", kCpu, kFp32, kFp32, {2, 128, 4, 32}, 256},
        OpsCase{"fp32_one_token", kCpu, kFp32, kFp32, {3, 1, 1, 16}, 7},
        OpsCase{"bf16_odd", kCpu, kBf16, kFp32, {2, 37, 3, 5}, 131},
        OpsCase{"bf16_all", kCpu, kBf16, kBf16, {2, 64, 2, 16}, 131}),
    case_name);

INSTANTIATE_TEST_SUITE_P(Cpu, ModelTest,
                         ::testing::Values(ModelCase{"fp32", kCpu, kFp32},
                                           ModelCase{"bf16", kCpu, kBf16}),
                         model_case_name);

class CpuModelTest : public ModelTest {};
INSTANTIATE_TEST_SUITE_P(Cpu, CpuModelTest,
                         ::testing::Values(ModelCase{"fp32", kCpu, kFp32}),
                         model_case_name);

TEST(CpuModel, GradientsDoNotDependOnTheNumberOfThreads) {
  // Large enough for every operation to be cut into several pieces.
  const GptConfig config = preset("tiny");
  const BatchShape shape{3, 128};
  Gpt model(config, shape.batch, shape.sequence, kFp32, make_cpu_ops(kFp32));
  ParameterStore store(parameters(config, kFp32), kFp32, model.stream());
  for (int p = 0; p < store.count(); ++p) {
    std::vector<float> values(static_cast<std::size_t>(store.weight(p).numel));
    initialize(config, p, 5, values);
    store.set_weight(p, values);
  }
  for (std::int64_t i = 0; i < shape.rows(); ++i) {
    model.tokens().as<std::int32_t>()[i] =
        static_cast<std::int32_t>(i * 7 % 256);
    model.targets().as<std::int32_t>()[i] =
        static_cast<std::int32_t>(i * 11 % 256);
  }
  std::vector<std::vector<float>> runs;
  for (int threads : {1, 2, 3}) {
    set_cpu_threads(threads, 1);
    store.reset();
    model.forward(store, shape, {.loss_count = 384, .backward = true});
    model.backward(store);
    std::vector<float> all;
    for (int p = 0; p < store.count(); ++p) {
      const std::vector<float> values = store.gradient(p);
      all.insert(all.end(), values.begin(), values.end());
    }
    runs.push_back(std::move(all));
  }
  set_cpu_threads(1, 1);
  // Equal where OpenBLAS sums every row alike, as on the processors at hand;
  // elsewhere it may round the rows at the cuts differently.
  double largest = 0;
  for (float value : runs[0])
    largest = std::max<double>(largest, std::abs(value));
  for (std::size_t i = 0; i < runs[0].size(); ++i)
    for (const std::vector<float>& run : runs)
      ASSERT_NEAR(run[i], runs[0][i], 1e-6 * largest) << "element " << i;
}

TEST_P(CpuModelTest, ATokenOutsideTheVocabularyIsNamed) {
  model_->tokens().as<std::int32_t>()[5] = 64;
  try {
    model_->forward_logits(*store_, {3, 16});
    FAIL() << "token 64 of 64 was accepted";
  } catch (const ddp::InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "token 5 is 64, but the vocabulary has 64 entries; give data "
                 "of the model's tokenizer");
  }
}

TEST(Threads, AreSharedByTheRanksOfAMachineUnlessSaid) {
  EXPECT_EQ(set_cpu_threads(3, 2), 3);
  EXPECT_EQ(set_cpu_threads(0, 1 << 20), 1);
  EXPECT_EQ(set_cpu_threads(1, 1), 1);
}

TEST(Ops, CpuRefusesTypesItDoesNotCompute) {
  EXPECT_THROW(make_cpu_ops(ddp::DType::kFloat16), ddp::InvalidArgument);
}

}  // namespace
}  // namespace gpt
