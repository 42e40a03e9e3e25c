#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/core/error.h"
#include "libddp/checkpoint/safetensors.h"
#include "libddp/checkpoint/safetensors_types.h"

namespace ddp {
namespace {

using Json = nlohmann::json;

// Three are in use. Errors print values by recursion, so there is a bound.
constexpr int kMaxDepth = 8;

std::string_view header_of(const MappedFile& file) {
  std::uint64_t length = 0;
  DDP_EXPECT(file.size() >= sizeof length, CorruptData, file.path(), ": has ",
             file.size(), " bytes, but the length of the header alone takes ",
             sizeof length);
  std::memcpy(&length, file.bytes().data(), sizeof length);
  DDP_EXPECT(length <= SafetensorsFile::kMaxHeaderBytes, CorruptData,
             file.path(), ": says its header has ", length,
             " bytes, but at most ", SafetensorsFile::kMaxHeaderBytes,
             " are believed; is it a safetensors file?");
  const std::uint64_t present = file.size() - sizeof length;
  DDP_EXPECT(length <= present, CorruptData, file.path(),
             ": says its header has ", length, " bytes, but only ", present,
             " follow; the file is cut short");
  return {reinterpret_cast<const char*>(file.bytes().data()) + sizeof length,
          static_cast<std::size_t>(length)};
}

// The library keeps the last of two equal keys in silence, so they are found
// while it parses.
Json parse(std::string_view text, const std::string& path) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    DDP_EXPECT(depth <= kMaxDepth, CorruptData, path,
               ": the header nests deeper than ", kMaxDepth, " levels");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key)
      DDP_EXPECT(keys.back().insert(parsed.get<std::string>()).second,
                 CorruptData, path, ": the header has \"",
                 parsed.get<std::string>(), "\" twice");
    return true;
  };
  try {
    Json header = Json::parse(text, watch);
    DDP_EXPECT(header.is_object(), CorruptData, path,
               ": the header is no JSON object but ", header.type_name());
    return header;
  } catch (const Json::exception& error) {
    throw CorruptData(
        concat(path, ": the header is not valid JSON: ", error.what()));
  }
}

// What a checker says of one tensor of one file.
struct Place {
  const std::string& path;
  const std::string& name;

  std::string text() const { return path + ": tensor \"" + name + "\""; }
};

const Json& member(const Json& entry, const char* key, const Place& place) {
  DDP_EXPECT(entry.is_object() && entry.contains(key), CorruptData,
             place.text(), " has no \"", key, "\"");
  return entry[key];
}

std::vector<std::int64_t> integers(const Json& list, const char* key,
                                   const Place& place) {
  DDP_EXPECT(list.is_array(), CorruptData, place.text(), ": \"", key,
             "\" is no list but ", list.dump());
  std::vector<std::int64_t> values;
  for (const Json& value : list) {
    DDP_EXPECT(value.is_number_unsigned() &&
                   value.get<std::uint64_t>() <=
                       static_cast<std::uint64_t>(
                           std::numeric_limits<std::int64_t>::max()),
               CorruptData, place.text(), ": \"", key, "\" holds ",
               value.dump(), ", which is no size");
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

std::int64_t bytes_of(const std::vector<std::int64_t>& shape,
                      std::int64_t element_bytes, const Place& place) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t bytes = element_bytes;
  for (const std::int64_t extent : shape)
    DDP_EXPECT(!__builtin_mul_overflow(bytes, extent, &bytes), CorruptData,
               place.text(), " would take more than 2^63 bytes");
  return bytes;
}

SafetensorsEntry entry_of(const Json& json, const Place& place,
                          std::span<const std::byte> data) {
  const Json& dtype = member(json, "dtype", place);
  const auto* type =
      dtype.is_string() ? find_type(dtype.get<std::string>()) : nullptr;
  DDP_EXPECT(type != nullptr, CorruptData, place.text(),
             " is of unknown dtype ", dtype.dump());
  SafetensorsEntry entry;
  entry.dtype_name = type->name;
  entry.shape = integers(member(json, "shape", place), "shape", place);
  const auto offsets =
      integers(member(json, "data_offsets", place), "data_offsets", place);
  DDP_EXPECT(offsets.size() == 2, CorruptData, place.text(), " has ",
             offsets.size(), " data_offsets, but must have 2");
  const auto size = static_cast<std::int64_t>(data.size());
  const std::int64_t begin = offsets[0], end = offsets[1];
  DDP_EXPECT(begin <= end && end <= size, CorruptData, place.text(),
             " lies in bytes ", begin, " to ", end, ", but the file holds ",
             size, " bytes of tensors; it may be cut short");
  const std::int64_t expected = bytes_of(entry.shape, type->bytes, place);
  DDP_EXPECT(end - begin == expected, CorruptData, place.text(), " has ",
             end - begin, " bytes, but its shape and dtype (", type->name,
             ") take ", expected);
  entry.bytes = data.subspan(static_cast<std::size_t>(begin),
                             static_cast<std::size_t>(expected));
  return entry;
}

SafetensorsMetadata metadata_of(const Json& json, const std::string& path) {
  DDP_EXPECT(json.is_object(), CorruptData, path,
             ": \"__metadata__\" is no map but ", json.type_name());
  SafetensorsMetadata metadata;
  for (const auto& [key, value] : json.items()) {
    DDP_EXPECT(value.is_string(), CorruptData, path, ": metadata \"", key,
               "\" is no string but ", value.dump());
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// Every byte of the data must belong to exactly one tensor.
void check_ranges(const std::map<std::string, SafetensorsEntry>& tensors,
                  std::span<const std::byte> data, const std::string& path) {
  using Item = std::pair<std::span<const std::byte>, const std::string*>;
  std::vector<Item> items;
  for (const auto& [name, entry] : tensors)
    items.emplace_back(entry.bytes, &name);
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::pair(a.first.data(), a.first.size()) <
           std::pair(b.first.data(), b.first.size());
  });
  std::int64_t covered = 0;
  for (const auto& [bytes, name] : items) {
    const std::int64_t begin = bytes.data() - data.data();
    DDP_EXPECT(begin == covered, CorruptData, path, ": tensor \"", *name,
               "\" begins at byte ", begin, ", but the one before it ends at ",
               covered, begin < covered ? " (they overlap)" : " (a hole)");
    covered += static_cast<std::int64_t>(bytes.size());
  }
  DDP_EXPECT(covered == static_cast<std::int64_t>(data.size()), CorruptData,
             path, ": holds ", data.size(), " bytes of tensors, but its ",
             "header names ", covered);
}

std::string text_of(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape)
    text += concat(text.size() > 1 ? ", " : "", extent);
  return text + "]";
}

}  // namespace

std::int64_t SafetensorsEntry::numel() const noexcept {
  return static_cast<std::int64_t>(bytes.size()) / find_type(dtype_name)->bytes;
}

DType SafetensorsEntry::dtype() const {
  const auto* type = find_type(dtype_name);
  DDP_EXPECT(type->dtype, InvalidArgument, "a tensor of dtype ", dtype_name,
             " can be carried but not computed with; convert it first");
  return *type->dtype;
}

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  const std::string_view text = header_of(file_);
  const auto data = file_.bytes().subspan(sizeof(std::uint64_t) + text.size());
  for (const auto& [name, json] : parse(text, path).items())
    if (name == "__metadata__")
      metadata_ = metadata_of(json, path);
    else
      tensors_[name] = entry_of(json, {path, name}, data);
  check_ranges(tensors_, data, path);
}

const SafetensorsEntry& SafetensorsFile::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  DDP_EXPECT(found != tensors_.end(), InvalidArgument, file_.path(),
             ": has no tensor \"", name, "\" among its ", tensors_.size());
  return found->second;
}

void SafetensorsFile::read(const std::string& name, DType dtype,
                           std::span<const std::int64_t> shape,
                           void* out) const {
  const SafetensorsEntry& entry = at(name);
  DDP_EXPECT(entry.dtype_name == type_of(dtype).name &&
                 std::ranges::equal(entry.shape, shape),
             InvalidArgument, file_.path(), ": tensor \"", name, "\" is ",
             entry.dtype_name, text_of(entry.shape), ", but ",
             type_of(dtype).name, text_of(shape), " is asked for");
  if (!entry.bytes.empty())
    std::memcpy(out, entry.bytes.data(), entry.bytes.size());
}

}  // namespace ddp
