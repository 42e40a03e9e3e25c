/// \file
/// GptConfig: the size of a GPT-2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpt {

/// Shape of the model; every block is GPT-2's (Radford et al. 2019).
struct GptConfig {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t width = 0;  ///< numbers a token, a multiple of `heads`
  std::int64_t heads = 0;
  std::int64_t sequence = 0;  ///< most tokens that attention sees
  std::int64_t vocabulary = 0;

  std::int64_t head_size() const noexcept { return width / heads; }
  /// Columns of the logits: a multiple of 128, so that rows stay aligned.
  std::int64_t padded_vocabulary() const noexcept {
    return (vocabulary + 127) / 128 * 128;
  }
  /// Elements of all parameters; the tied head counts once.
  std::int64_t parameter_elements() const noexcept;
};

/// The size of that name. Throws InvalidArgument that lists all names.
GptConfig preset(std::string_view name);

/// Names of all presets, smallest first.
std::vector<std::string> preset_names();

}  // namespace gpt
