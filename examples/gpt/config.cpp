#include "examples/gpt/config.h"

#include "kernels/core/error.h"

namespace gpt {
namespace {

const std::vector<GptConfig>& presets() {
  static const std::vector<GptConfig> kPresets = {
      {"tiny", 4, 128, 4, 128, 256},         // bytes
      {"d12", 12, 768, 12, 1024, 50257},     // GPT-2, 124 M
      {"d24", 24, 1024, 16, 1024, 50257},    // GPT-2 medium, 355 M
      {"d36", 36, 1280, 20, 1024, 50257},    // GPT-2 large, 774 M
      {"d48", 48, 1600, 25, 1024, 50257}};   // GPT-2 XL, 1558 M
  return kPresets;
}

}  // namespace

std::int64_t GptConfig::parameter_elements() const noexcept {
  const std::int64_t block = 12 * width * width + 13 * width;
  return (vocabulary + sequence) * width + layers * block + 2 * width;
}

GptConfig preset(std::string_view name) {
  std::string known;
  for (const GptConfig& config : presets()) {
    if (config.name == name) return config;
    known += (known.empty() ? "" : ", ") + config.name;
  }
  throw ddp::InvalidArgument(ddp::concat("there is no model \"", name,
                                         "\"; choose one of ", known));
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const GptConfig& config : presets()) names.push_back(config.name);
  return names;
}

}  // namespace gpt
