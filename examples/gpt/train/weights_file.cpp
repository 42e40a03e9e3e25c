#include "examples/gpt/train/weights_file.h"

#include <cstring>
#include <vector>

#include "kernels/core/half.h"

namespace gpt {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (std::int64_t size : shape)
    text += (text.empty() ? "[" : ", ") + std::to_string(size);
  return text.empty() ? "[]" : text + "]";
}

template <typename Half>
void widen(std::span<const std::byte> bytes, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Half half;
    std::memcpy(&half, bytes.data() + i * sizeof half, sizeof half);
    values[i] = ddp::to_float(half);
  }
}

}  // namespace

void read_weight(const ddp::SafetensorsFile& file, const std::string& path,
                 const ddp::ParameterSpec& parameter, std::span<float> values) {
  const std::string prefixed = "transformer." + parameter.name;
  const ddp::SafetensorsEntry& entry =
      file.at(file.has(prefixed) ? prefixed : parameter.name);
  DDP_EXPECT(entry.shape == parameter.shape, InvalidArgument, path, " has ",
             parameter.name, " of shape ", shape_text(entry.shape),
             ", the model wants ", shape_text(parameter.shape),
             "; choose the --model that the file was written for");
  switch (entry.dtype()) {
    case ddp::DType::kFloat32:
      std::memcpy(values.data(), entry.bytes.data(), values.size_bytes());
      return;
    case ddp::DType::kBFloat16:
      return widen<ddp::bfloat16>(entry.bytes, values);
    case ddp::DType::kFloat16: return widen<ddp::float16>(entry.bytes, values);
    default:
      throw ddp::InvalidArgument(
          ddp::concat(path, " has ", parameter.name, " as ", entry.dtype_name,
                      "; weights are read from F32, BF16 or F16"));
  }
}

void write_weights(const std::string& path, ddp::DataParallel& engine,
                   bool is_writer) {
  std::vector<std::vector<float>> values;
  std::vector<ddp::SafetensorsInput> tensors;
  for (int p = 0; p < engine.parameter_count(); ++p) {
    std::vector<float> weight = engine.read_weight(p);
    if (!is_writer) continue;
    values.push_back(std::move(weight));
    tensors.push_back({.name = engine.parameter(p).name,
                       .shape = engine.parameter(p).shape,
                       .data = values.back().data()});
  }
  if (is_writer) ddp::write_safetensors(path, tensors, {{"format", "pt"}});
}

}  // namespace gpt
