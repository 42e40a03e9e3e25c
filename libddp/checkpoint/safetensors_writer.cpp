#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/core/error.h"
#include "libddp/checkpoint/safetensors.h"
#include "libddp/checkpoint/safetensors_types.h"
#include "libddp/data/atomic_file.h"

namespace ddp {
namespace {

using Json = nlohmann::ordered_json;

void check(std::span<const SafetensorsInput> tensors, const std::string& path) {
  std::set<std::string_view> names;
  for (const SafetensorsInput& tensor : tensors) {
    DDP_EXPECT(!tensor.name.empty() && tensor.name != "__metadata__",
               InvalidArgument, path, ": a tensor is named \"", tensor.name,
               "\", which the format does not allow");
    DDP_EXPECT(names.insert(tensor.name).second, InvalidArgument, path,
               ": two tensors are named \"", tensor.name, "\"");
    for (const std::int64_t extent : tensor.shape)
      DDP_EXPECT(extent >= 0, InvalidArgument, path, ": tensor \"", tensor.name,
                 "\" has an extent of ", extent);
  }
}

std::int64_t bytes_of(const SafetensorsInput& tensor) {
  std::int64_t bytes = type_of(tensor.dtype).bytes;
  for (const std::int64_t extent : tensor.shape) bytes *= extent;
  return bytes;
}

// Widest type first keeps every tensor aligned to its element.
std::vector<const SafetensorsInput*> in_file_order(
    std::span<const SafetensorsInput> tensors) {
  std::vector<const SafetensorsInput*> order;
  for (const SafetensorsInput& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const auto* type_a = &type_of(a->dtype);
    const auto* type_b = &type_of(b->dtype);
    return type_a != type_b ? type_a < type_b : a->name < b->name;
  });
  return order;
}

std::string header_of(const std::vector<const SafetensorsInput*>& tensors,
                      const SafetensorsMetadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t begin = 0;
  for (const SafetensorsInput* tensor : tensors) {
    const std::int64_t end = begin + bytes_of(*tensor);
    Json& entry = header[tensor->name];
    entry["dtype"] = type_of(tensor->dtype).name;
    entry["shape"] = tensor->shape;
    entry["data_offsets"] = {begin, end};
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::string& path,
                       std::span<const SafetensorsInput> tensors,
                       const SafetensorsMetadata& metadata) {
  check(tensors, path);
  const auto order = in_file_order(tensors);
  std::string header;
  try {
    header = header_of(order, metadata);
  } catch (const Json::exception& error) {
    throw InvalidArgument(
        concat(path, ": names and metadata must be UTF-8: ", error.what()));
  }
  AtomicFile file(path);
  const std::uint64_t header_bytes = header.size();
  file.write(&header_bytes, sizeof header_bytes);
  file.write(header.data(), header.size());
  for (const SafetensorsInput* tensor : order)
    file.write(tensor->data, static_cast<std::size_t>(bytes_of(*tensor)));
  file.commit();
}

}  // namespace ddp
