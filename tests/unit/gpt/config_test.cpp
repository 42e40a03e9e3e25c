#include "examples/gpt/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "examples/gpt/model/parameters.h"
#include "examples/gpt/train/options.h"
#include "kernels/core/error.h"

namespace gpt {
namespace {

std::int64_t elements(const std::vector<ddp::ParameterSpec>& all) {
  std::int64_t sum = 0;
  for (const auto& each : all) {
    std::int64_t product = 1;
    for (auto size : each.shape) product *= size;
    sum += product;
  }
  return sum;
}

TEST(Config, PresetsHaveThePublishedNumbersOfParameters) {
  EXPECT_EQ(preset("d12").parameter_elements(), 124'439'808);
  EXPECT_EQ(preset("d24").parameter_elements(), 354'823'168);
  EXPECT_EQ(preset("d36").parameter_elements(), 774'030'080);
  EXPECT_EQ(preset("d48").parameter_elements(), 1'557'611'200);
  for (const std::string& name : preset_names())
    EXPECT_EQ(elements(parameters(preset(name), ddp::DType::kFloat32)),
              preset(name).parameter_elements());
}

TEST(Config, LogitsArePaddedTo128) {
  EXPECT_EQ(preset("d12").padded_vocabulary(), 50304);
  EXPECT_EQ(preset("tiny").padded_vocabulary(), 256);
}

TEST(Config, AnUnknownPresetListsTheKnownOnes) {
  try {
    preset("d13");
    FAIL() << "d13 was accepted";
  } catch (const ddp::InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "there is no model \"d13\"; choose one of tiny, d12, d24, "
                 "d36, d48");
  }
}

TEST(Parameters, HaveTheNamesAndShapesOfHuggingFace) {
  const auto all = parameters(preset("d12"), ddp::DType::kBFloat16);
  ASSERT_EQ(all.size(), 148u);
  EXPECT_EQ(all[0].name, "wte.weight");
  EXPECT_EQ(all[1].name, "wpe.weight");
  const auto& attention = all[parameter_index(11, kAttentionWeight)];
  EXPECT_EQ(attention.name, "h.11.attn.c_attn.weight");
  EXPECT_EQ(attention.shape, (std::vector<std::int64_t>{768, 2304}));
  EXPECT_EQ(attention.dtype, ddp::DType::kBFloat16);
  EXPECT_EQ(all[parameter_index(0, kMlpOutBias)].name, "h.0.mlp.c_proj.bias");
  EXPECT_EQ(all[final_norm_index(preset("d12"))].name, "ln_f.weight");
  EXPECT_EQ(all.back().name, "ln_f.bias");
}

TEST(Parameters, OnlyMatricesAreDecayed) {
  for (const auto& each : parameters(preset("tiny"), ddp::DType::kFloat32))
    EXPECT_EQ(is_decayed(each), each.name.find("ln_") == std::string::npos &&
                                    each.name.find("bias") == std::string::npos)
        << each.name;
}

double deviation(const std::vector<float>& values) {
  double sum = 0;
  for (float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(Parameters, FirstValuesAreGpt2s) {
  const GptConfig config = preset("tiny");
  std::vector<float> values(128 * 512);
  initialize(config, parameter_index(0, kMlpWeight), 1, values);
  EXPECT_NEAR(deviation(values), 0.02, 2e-4);
  initialize(config, parameter_index(3, kMlpOutWeight), 1, values);
  EXPECT_NEAR(deviation(values), 0.02 / std::sqrt(8.0), 1e-4);
  values.resize(128);
  initialize(config, parameter_index(2, kLn2Weight), 1, values);
  EXPECT_EQ(values, std::vector<float>(128, 1.0f));
  initialize(config, final_norm_index(config), 1, values);
  EXPECT_EQ(values, std::vector<float>(128, 1.0f));
  initialize(config, final_norm_index(config) + 1, 1, values);
  EXPECT_EQ(values, std::vector<float>(128, 0.0f));
}

TEST(Parameters, FirstValuesDependOnSeedAndParameterAlone) {
  const GptConfig config = preset("tiny");
  std::vector<float> a(1000), b(1000);
  initialize(config, 0, 1, a);
  initialize(config, 0, 1, b);
  EXPECT_EQ(a, b);
  initialize(config, 0, 2, b);
  EXPECT_NE(a, b);
  initialize(config, 1, 1, b);
  EXPECT_NE(a, b);
}

TEST(Options, TheGlobalBatchIsSplitOverRanks) {
  const GptConfig tiny = preset("tiny");
  TrainOptions options;
  options.global_batch = 16;
  EXPECT_EQ(resolve(options, tiny, 1).batch, 16);
  EXPECT_EQ(resolve(options, tiny, 4).batch, 4);
  options.batch = 4;
  EXPECT_EQ(resolve(options, tiny, 2).accumulation, 2);
  EXPECT_EQ(resolve({}, tiny, 2).global_batch, 16);
}

TEST(Options, AGlobalBatchThatDoesNotDivideNamesAllNumbers) {
  TrainOptions options;
  options.global_batch = 16;
  try {
    resolve(options, preset("tiny"), 3);
    FAIL() << "16 was split over 3 ranks";
  } catch (const ddp::InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "--global-batch 16 is not --batch 5 x --accumulation 1 x 3 "
                 "ranks = 15; choose a multiple of the ranks, or leave --batch "
                 "out");
  }
}

TEST(Options, ASequenceLongerThanThePositionsIsRefused) {
  TrainOptions options;
  options.sequence = 129;
  EXPECT_THROW(resolve(options, preset("tiny"), 1), ddp::InvalidArgument);
  options.sequence = 128;
  options.steps = 10;
  options.warmup = 10;
  EXPECT_THROW(resolve(options, preset("tiny"), 1), ddp::InvalidArgument);
}

}  // namespace
}  // namespace gpt
