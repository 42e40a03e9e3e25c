// However many ranks train, they end where one process ends that computes in
// double precision: every combination of the table below.
#include "tests/support/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/ranks.h"

namespace ddp::test {
namespace {

constexpr int kSteps = 5;
constexpr int kMicroBatches = 24;  // a step, over all ranks: 1, 2, 3, 4, 8

/// Odd sizes, 0-dim, empty, tied, frozen, mixed types.
std::vector<ParameterSpec> odd_parameters(DType dtype) {
  return {
      {.name = "table", .shape = {101}, .dtype = dtype},
      {.name = "scalar", .shape = {}, .dtype = dtype},
      {.name = "empty", .shape = {0}, .dtype = dtype},
      {.name = "wide", .shape = {7}, .dtype = DType::kFloat64},
      {.name = "frozen", .shape = {5}, .dtype = dtype, .requires_grad = false},
      {.name = "one", .shape = {1}, .dtype = DType::kFloat32},
      {.name = "matrix", .shape = {9, 33}, .dtype = dtype},
      {.name = "head", .shape = {101}, .dtype = dtype, .tied_to = "table"}};
}

double initial_value(int parameter, std::int64_t i) {
  return 0.125 * ((parameter * 7 + i * 3) % 17 - 8);
}

/// A multiple of 1/8 below 4: sums over micro-batches are exact in fp32.
double gradient_value(int step, int micro, int parameter, std::int64_t i) {
  return 0.125 * ((step * 5 + micro * 11 + parameter * 3 + i * 7) % 61 - 30);
}

struct Case {
  int world = 1;
  int stage = 0;
  std::string policy;
  int accumulation = 1;
  double clip = 0;
  int optimizer = 0;

  auto key() const {
    return std::tuple(world, stage, policy, accumulation, clip, optimizer);
  }
};

OptimizerConfig optimizer_of(const Case& c) {
  if (c.optimizer == 0) return AdamW{.lr = 0.01f, .weight_decay = 0.1f};
  if (c.optimizer == 1) return Adam{.lr = 0.01f, .weight_decay = 0.1f};
  return Sgd{.lr = 0.01f, .momentum = 0.9f, .weight_decay = 0.1f};
}

void PrintTo(const Case& c, std::ostream* out) {
  *out << "world " << c.world << ", stage " << c.stage << ", " << c.policy
       << ", accumulation " << c.accumulation << ", clip " << c.clip
       << ", optimizer " << c.optimizer;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const int world : world_sizes())
    for (const int stage : {0, 1})
      for (const char* policy : {"fp32", "bf16"})
        for (const int accumulation : {1, 3})
          for (const double clip : {0.0, 1.0})
            for (const int optimizer : {0, 1, 2})
              cases.push_back(
                  {world, stage, policy, accumulation, clip, optimizer});
  return cases;
}

std::vector<double> micro_gradient(const ParameterSpec& spec, int index,
                                   int step, int micro) {
  std::vector<double> values(numel(spec));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = gradient_value(step, micro, index, i);
  return values;
}

/// One process over the whole batch, in double precision.
class Reference {
 public:
  Reference(std::vector<ParameterSpec> specs, const Case& c)
      : specs_(std::move(specs)), case_(c) {
    for (int p = 0; p < 7; ++p) {
      std::vector<double> initial(numel(specs_[p]));
      for (std::size_t i = 0; i < initial.size(); ++i)
        initial[i] = initial_value(p, i);
      parameters_.emplace_back(initial);
    }
  }

  double step(int step) {
    std::vector<std::vector<double>> gradients;
    double squares = 0;
    for (int p = 0; p < 7; ++p) {
      std::vector<double> sum(numel(specs_[p]), 0.0);
      for (int micro = 0; micro < kMicroBatches; ++micro)
        for (std::size_t i = 0; i < sum.size(); ++i) {
          sum[i] += gradient_value(step, micro, p, i) / kMicroBatches;
          if (p == 0)  // the tied head adds its own part
            sum[i] += gradient_value(step, micro, 7, i) / kMicroBatches;
        }
      if (specs_[p].requires_grad)
        for (const double g : sum) squares += g * g;
      gradients.push_back(std::move(sum));
    }
    const double norm = std::sqrt(squares);
    const double factor =
        case_.clip > 0 && norm > case_.clip ? case_.clip / norm : 1.0;
    for (int p = 0; p < 7; ++p) {
      if (!specs_[p].requires_grad) continue;
      for (double& g : gradients[p]) g *= factor;
      parameters_[p].update(optimizer_of(case_), gradients[p]);
    }
    return norm;
  }

  const std::vector<double>& weight(int p) const {
    return parameters_[p].weight;
  }

 private:
  std::vector<ParameterSpec> specs_;
  Case case_;
  std::vector<ReferenceParameter> parameters_;
};

void backward(DataParallel& dp, int step, int first, int last) {
  for (int p = dp.parameter_count() - 1; p >= 0; --p) {
    if (!dp.parameter(p).requires_grad) continue;
    std::vector<double> sum(numel(dp.parameter(p)), 0.0);
    for (int micro = first; micro < last; ++micro) {
      const auto part = micro_gradient(dp.parameter(p), p, step, micro);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    give(dp, p, sum);
  }
}

void train(World& world, const Case& c) {
  const DType dtype = c.policy == "bf16" ? DType::kBFloat16 : DType::kFloat32;
  const auto specs = odd_parameters(dtype);
  DataParallel dp(
      world, specs,
      {.zero_stage = c.stage,
       .precision = c.policy == "bf16" ? Precision::bf16() : Precision::fp32(),
       .optimizer = optimizer_of(c),
       .clip_norm = c.clip,
       .bucket_bytes = 256});
  dp.initialize([](int p, std::span<float> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(initial_value(p, i));
  });
  Reference reference(specs, c);
  const int share = kMicroBatches / c.world;
  const int part = std::max(1, share / c.accumulation);
  std::vector<double> norms;
  for (int step = 0; step < kSteps; ++step) {
    norms.push_back(reference.step(step));
    const int begin = world.rank() * share;
    for (int at = begin; at < begin + share; at += part) {
      const int end = at + 2 * part > begin + share ? begin + share : at + part;
      dp.set_gradient_sync(end == begin + share);
      backward(dp, step, at, end);
      if (end == begin + share) break;
    }
    dp.step({.num_items = double(share)}, StreamView::cpu());
  }
  const auto reports = dp.wait_reports();
  ASSERT_EQ(reports.size(), norms.size());
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_TRUE(reports[step].applied);
    EXPECT_NEAR(reports[step].norm, norms[step], 1e-6 * norms[step]);
  }
  for (int p = 0; p < 7; ++p) {
    const std::vector<float> trained = dp.read_weight(p);
    const std::vector<double>& expected = reference.weight(p);
    ASSERT_EQ(trained.size(), expected.size());
    // Gradients are exact, so only the update rounds: a fraction of lr.
    for (std::size_t i = 0; i < trained.size(); ++i)
      ASSERT_NEAR(trained[i], expected[i], 0.01 * 1e-3)
          << specs[p].name << "[" << i << "]";
    const auto weights = values_of(dp.weight(p));
    const double ulp = dtype == DType::kBFloat16 ? 1.0 / 256 : 1e-6;
    for (std::size_t i = 0; i < weights.size(); ++i)
      ASSERT_NEAR(weights[i], trained[i],
                  ulp * std::max(1.0, std::abs(weights[i])));
  }
  EXPECT_EQ(dp.weight(7).data, dp.weight(0).data);
}

TEST(Training, EndsWhereOneProcessEndsInEveryCombination) {
  std::set<decltype(Case().key())> ran;
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    run_ranks(c.world, [&](World& world) { train(world, c); });
    ran.insert(c.key());
  }
  EXPECT_EQ(ran.size(), world_sizes().size() * 2 * 2 * 2 * 2 * 3);
}

TEST(Training, IsBitwiseEqualAcrossStagesAtEqualWorld) {
  for (const int size : world_sizes()) {
    std::vector<std::vector<float>> by_stage[2];
    for (const int stage : {0, 1})
      run_ranks(size, [&](World& world) {
        DataParallel dp(world, odd_parameters(DType::kBFloat16),
                        {.zero_stage = stage,
                         .precision = Precision::bf16(),
                         .clip_norm = 1.0,
                         .bucket_bytes = 256});
        dp.initialize([](int p, std::span<float> values) {
          for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(initial_value(p, i));
        });
        for (int step = 0; step < kSteps; ++step) {
          backward(dp, step, world.rank(), world.rank() + 3);
          dp.step({}, StreamView::cpu());
        }
        std::vector<std::vector<float>> weights;
        for (int p = 0; p < 7; ++p) weights.push_back(dp.read_weight(p));
        if (world.rank() == 0) by_stage[stage] = weights;
      });
    EXPECT_EQ(by_stage[0], by_stage[1]) << "world " << size;
  }
}

}  // namespace
}  // namespace ddp::test
