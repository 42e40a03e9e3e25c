#include "examples/gpt/train/generate.h"

#include <algorithm>
#include <cmath>

#include "examples/gpt/model/random.h"
#include "kernels/core/half.h"
#include "libddp/device/stream.h"

namespace gpt {
namespace {

/// Logits of one position, on the host.
std::vector<float> read_logits(const Gpt& model, std::int64_t row) {
  const GptConfig& config = model.config();
  const ddp::TensorView from =
      model.logits().slice(row * config.padded_vocabulary(), config.vocabulary);
  std::vector<float> values(static_cast<std::size_t>(config.vocabulary));
  if (from.dtype == ddp::DType::kFloat32) {
    ddp::copy_bytes(values.data(), from.data, from.bytes(), model.stream());
    ddp::synchronize(model.stream());
    return values;
  }
  std::vector<ddp::bfloat16> narrow(values.size());
  ddp::copy_bytes(narrow.data(), from.data, from.bytes(), model.stream());
  ddp::synchronize(model.stream());
  std::transform(narrow.begin(), narrow.end(), values.begin(),
                 [](ddp::bfloat16 value) { return ddp::to_float(value); });
  return values;
}

/// `random` is uniform in [0, 1).
std::int32_t choose(const std::vector<float>& logits, double temperature,
                    double random) {
  const auto best = std::max_element(logits.begin(), logits.end());
  if (temperature <= 0) return static_cast<std::int32_t>(best - logits.begin());
  std::vector<double> sums;
  double total = 0;
  for (float logit : logits) {
    total += std::exp((static_cast<double>(logit) - *best) / temperature);
    sums.push_back(total);
  }
  const auto found = std::upper_bound(sums.begin(), sums.end(), random * total);
  return static_cast<std::int32_t>(std::min(found, sums.end() - 1) -
                                   sums.begin());
}

}  // namespace

std::vector<std::int32_t> generate(Gpt& model, Uploader& uploader,
                                   const ParameterAccess& weights,
                                   std::vector<std::int32_t> prompt,
                                   const GenerateOptions& options) {
  std::vector<std::int32_t> text = std::move(prompt);
  DDP_EXPECT(!text.empty(), InvalidArgument,
             "text is continued from at least one token");
  const auto sequence = static_cast<std::size_t>(options.sequence);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::size_t known = std::min(text.size(), sequence);
    // Attention looks back only, so what fills up the rest does not matter.
    // A GPU's graphs are made for one shape; a CPU saves the work instead.
    const std::size_t shown = model.stream().device.is_cpu() ? known : sequence;
    std::vector<std::int32_t> context(
        text.end() - static_cast<std::ptrdiff_t>(known), text.end());
    context.resize(shown, 0);
    const std::vector<std::int32_t> no_targets(shown, -1);
    const auto rows = static_cast<std::int64_t>(shown);
    uploader.upload(context.data(), no_targets.data(), rows);
    model.forward_logits(weights, {1, rows});
    text.push_back(
        choose(read_logits(model, static_cast<std::int64_t>(known) - 1),
               options.temperature,
               uniform(random_bits(options.seed, 0x67656e, text.size()))));
  }
  return text;
}

std::string to_text(const std::vector<std::int32_t>& tokens,
                    const GptConfig& config) {
  std::string text;
  for (std::int32_t token : tokens) {
    if (config.vocabulary != 256) {
      if (!text.empty()) text += ' ';
      text += std::to_string(token);
      continue;
    }
    const bool shows =
        token == '\n' || token == '\t' || (token >= ' ' && token < 127);
    text += shows ? static_cast<char>(token) : '?';
  }
  return text;
}

}  // namespace gpt
