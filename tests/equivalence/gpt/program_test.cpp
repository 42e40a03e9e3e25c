// The program gpt from its command line to its last line.
#include "tests/equivalence/gpt/program.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.h"

namespace gpt {
namespace {

using ::testing::HasSubstr;

class Program : public ::testing::Test {
 protected:
  void SetUp() override { write_text(data_, 150'000); }

  /// Arguments of a run short enough for a test.
  std::string arguments(int steps) const {
    return "--device cpu --data " + data_ + " --global-batch 4 --steps " +
           std::to_string(steps) + " --lr 1e-3 --sample 0 --val-batches 2 ";
  }

  ddp::TemporaryFolder folder_;
  const std::string data_ = folder_ / "text.txt";
};

TEST_F(Program, LossCurvesAreTheSameOnOneTwoAndFourRanks) {
  std::vector<std::vector<double>> losses;
  for (int ranks : {1, 2, 4}) {
    const std::string log = folder_ / ("log" + std::to_string(ranks));
    const ProgramResult run =
        run_program(ranks, arguments(50) + "--log " + log);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    losses.push_back(read_log(log, "loss"));
    ASSERT_EQ(losses.back().size(), 50u);
  }
  EXPECT_LT(losses[0].back(), losses[0].front() - 1.0) << "it learns nothing";
  for (const std::vector<double>& run : losses)
    for (std::size_t step = 0; step < run.size(); ++step)
      EXPECT_NEAR(run[step], losses[0][step], 1e-4) << "step " << step + 1;
}

TEST_F(Program, AccumulationIsALargerBatch) {
  std::vector<std::vector<double>> losses;
  for (const char* split : {"--batch 4", "--batch 1 --accumulation 4"}) {
    const std::string log = folder_ / "log";
    const ProgramResult run =
        run_program(1, arguments(20) + split + " --log " + log);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    losses.push_back(read_log(log, "loss"));
  }
  for (std::size_t step = 0; step < 20; ++step)
    EXPECT_NEAR(losses[0][step], losses[1][step], 1e-4) << "step " << step;
}

TEST_F(Program, EndsWithOneLineOfJson) {
  const ProgramResult run = run_program(2, arguments(3));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto summary = nlohmann::json::parse(last_line(run.output));
  EXPECT_EQ(summary.at("world"), 2);
  EXPECT_EQ(summary.at("device"), "cpu");
  EXPECT_EQ(summary.at("steps"), 3);
  EXPECT_GT(summary.at("final_train_loss"), 0);
  EXPECT_GT(summary.at("final_val_loss"), 0);
  EXPECT_GT(summary.at("tokens_per_s"), 0);
  EXPECT_GE(summary.at("exposed_ms"), 0);
  EXPECT_THAT(run.output, HasSubstr("held-out loss after 3 updates"));
}

TEST_F(Program, LogsEveryKeyOfEveryUpdate) {
  const std::string log = folder_ / "log";
  ASSERT_EQ(run_program(1, arguments(3) + "--log " + log).exit_code, 0);
  for (const char* key :
       {"loss", "norm", "lr", "ms", "tokens_per_s", "exposed_ms"})
    EXPECT_EQ(read_log(log, key).size(), 3u) << key;
  EXPECT_EQ(read_log(log, "step"), (std::vector<double>{1, 2, 3}));
}

TEST_F(Program, GoesOnFromTheWeightsItWrote) {
  const std::string weights = folder_ / "weights.safetensors";
  const ProgramResult first =
      run_program(2, arguments(10) + "--out " + weights);
  ASSERT_EQ(first.exit_code, 0) << first.output;
  // A rate too small to change anything shows the weights as they were read.
  const ProgramResult second =
      run_program(1, arguments(1) + "--warmup 0 --lr 1e-30 --init " + weights);
  ASSERT_EQ(second.exit_code, 0) << second.output;
  const auto loss = [](const ProgramResult& run) {
    return nlohmann::json::parse(last_line(run.output))
        .at("final_val_loss")
        .get<double>();
  };
  EXPECT_NEAR(loss(second), loss(first), 1e-5);
}

TEST_F(Program, TrainsInBfloat16) {
  const std::string log = folder_ / "log";
  const ProgramResult run = run_program(
      2, arguments(30) + "--precision bf16 --drift-check 5 --log " + log);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const std::vector<double> losses = read_log(log, "loss");
  EXPECT_LT(losses.back(), losses.front() - 0.5);
}

TEST_F(Program, GeneratesText) {
  const ProgramResult run =
      run_program(1, arguments(2) + "--sample 12 --temperature 0");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("--- sample ---"));
}

TEST_F(Program, RefusesAnUnknownOption) {
  const ProgramResult run = run_program(1, arguments(1) + "--lrr 3");
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("--lrr"));
}

TEST_F(Program, RefusesAnUnknownModel) {
  const ProgramResult run = run_program(1, arguments(1) + "--model d13");
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("d13"));
  EXPECT_THAT(run.output, HasSubstr("d12"));
}

TEST_F(Program, NamesDataThatIsMissing) {
  const ProgramResult run = run_program(2, "--device cpu --data /no/such.txt");
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("/no/such.txt"));
}

TEST_F(Program, SaysWhichDataIsTooShort) {
  write_text(data_, 3000);
  const ProgramResult run =
      run_program(1, "--device cpu --batch 64 --data " + data_);
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("has 22 sequences of 128 tokens"));
  EXPECT_THAT(run.output, HasSubstr("an update takes 64"));
}

TEST_F(Program, NamesTheWorldThatABatchDoesNotFit) {
  const ProgramResult run = run_program(3, arguments(1));
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("--global-batch 4 is not --batch 1"));
}

TEST_F(Program, RefusesWeightsOfAnotherModel) {
  const std::string weights = folder_ / "weights.safetensors";
  std::ofstream(weights) << "this is no safetensors file";
  const ProgramResult run = run_program(2, arguments(1) + "--init " + weights);
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr(weights));
}

#ifndef DDP_HAS_CUDA
TEST_F(Program, SaysThatThisBuildHasNoCuda) {
  const ProgramResult run =
      run_program(1, "--data " + data_ + " --device cuda");
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("LIBDDP_CUDA"));
}
#endif

}  // namespace
}  // namespace gpt
