/// \file
/// generate: text that the model continues, one token at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/gpt/model/model.h"
#include "examples/gpt/train/uploader.h"

namespace gpt {

struct GenerateOptions {
  std::int64_t tokens = 200;
  /// Divides the logits before the softmax; 0 takes the likeliest token.
  double temperature = 0.8;
  std::uint64_t seed = 0;
  /// Tokens of the longest context, the model's `max_sequence`.
  std::int64_t sequence = 0;
};

/// Continues `prompt` (at least one token). On this rank alone; waits for the
/// device.
std::vector<std::int32_t> generate(Gpt& model, Uploader& uploader,
                                   const ParameterAccess& weights,
                                   std::vector<std::int32_t> prompt,
                                   const GenerateOptions& options);

/// Bytes as text, with what cannot be shown replaced by '?'; for models with
/// other vocabularies the numbers of the tokens.
std::string to_text(const std::vector<std::int32_t>& tokens,
                    const GptConfig& config);

}  // namespace gpt
