#include "examples/gpt/model/parameters.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "examples/gpt/model/random.h"

namespace gpt {
namespace {

struct BlockEntry {
  const char* name;
  std::int64_t rows;  // in units of the width; 0: a vector
  std::int64_t columns;
};

constexpr BlockEntry kBlock[kBlockParameters] = {
    {"ln_1.weight", 0, 1},        {"ln_1.bias", 0, 1},
    {"attn.c_attn.weight", 1, 3}, {"attn.c_attn.bias", 0, 3},
    {"attn.c_proj.weight", 1, 1}, {"attn.c_proj.bias", 0, 1},
    {"ln_2.weight", 0, 1},        {"ln_2.bias", 0, 1},
    {"mlp.c_fc.weight", 1, 4},    {"mlp.c_fc.bias", 0, 4},
    {"mlp.c_proj.weight", 4, 1},  {"mlp.c_proj.bias", 0, 1}};

bool is_norm_weight(int which) {
  return which == kLn1Weight || which == kLn2Weight;
}

bool ends_residual_branch(int which) {
  return which == kAttentionOutWeight || which == kMlpOutWeight;
}

void fill_normal(std::span<float> values, double deviation, std::uint64_t seed,
                 int parameter) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(
        deviation * normal(seed, static_cast<std::uint64_t>(parameter), i));
}

}  // namespace

std::vector<ddp::ParameterSpec> parameters(const GptConfig& config,
                                           ddp::DType dtype) {
  const std::int64_t width = config.width;
  std::vector<ddp::ParameterSpec> all;
  const auto add = [&](std::string name, std::vector<std::int64_t> shape) {
    all.push_back({std::move(name), std::move(shape), dtype});
  };
  add("wte.weight", {config.vocabulary, width});
  add("wpe.weight", {config.sequence, width});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = "h." + std::to_string(layer) + ".";
    for (const BlockEntry& entry : kBlock) {
      if (entry.rows == 0)
        add(prefix + entry.name, {entry.columns * width});
      else
        add(prefix + entry.name, {entry.rows * width, entry.columns * width});
    }
  }
  add("ln_f.weight", {width});
  add("ln_f.bias", {width});
  return all;
}

bool is_decayed(const ddp::ParameterSpec& parameter) {
  return parameter.shape.size() > 1;
}

void initialize(const GptConfig& config, int parameter, std::uint64_t seed,
                std::span<float> values) {
  constexpr double kDeviation = 0.02;
  if (parameter <= kPositionTable)
    return fill_normal(values, kDeviation, seed, parameter);
  const int which = (parameter - 2) % kBlockParameters;
  if (kBlock[which].rows == 0) {  // ln_f lies where a block's ln_1 would
    std::fill(values.begin(), values.end(), is_norm_weight(which) ? 1.f : 0.f);
    return;
  }
  const double shrink = ends_residual_branch(which)
                            ? std::sqrt(2.0 * static_cast<double>(config.layers))
                            : 1.0;
  fill_normal(values, kDeviation / shrink, seed, parameter);
}

}  // namespace gpt
