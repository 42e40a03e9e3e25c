/// \file
/// Files of named tensors in the safetensors layout, which other tools read.
///
///     | uint64 n | n bytes of JSON, padded by blanks | tensors' bytes |
///
/// little-endian; the JSON gives dtype, shape and the byte range of each
/// tensor after the header, and an optional map of strings, "__metadata__".
/// Ranges follow each other without holes
/// (https://github.com/huggingface/safetensors#format).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/dtype.h"
#include "libddp/data/mapped_file.h"

namespace ddp {

using SafetensorsMetadata = std::map<std::string, std::string>;

/// One tensor to write: contiguous, row-major, in host memory.
struct SafetensorsInput {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;  ///< empty: a scalar
  const void* data = nullptr;
};

/// Writes all tensors to `path`, byte for byte as the Python package does:
/// widest type first, then by name. The file appears whole or not at all; one
/// that was there stays until then. Throws InvalidArgument for a name that
/// comes twice, is empty or reserved, and for a negative extent; Error with
/// the system's reason if the disk refuses.
void write_safetensors(const std::string& path,
                       std::span<const SafetensorsInput> tensors,
                       const SafetensorsMetadata& metadata = {});

/// One tensor of a file that is open.
struct SafetensorsEntry {
  /// As the file has it: "F32", "BF16", "I64", "BOOL", ...
  std::string dtype_name;
  std::vector<std::int64_t> shape;
  /// Mapped, valid as long as the file object; aligned only as far as the
  /// writer cared, so copy rather than cast.
  std::span<const std::byte> bytes;

  std::int64_t numel() const noexcept;
  /// Throws InvalidArgument for types that files may hold and libddp does not
  /// compute with, such as "BOOL" or "F8_E4M3".
  DType dtype() const;
};

/// A mapped file, checked as a whole when it is opened. Immutable; any thread
/// may read.
class SafetensorsFile {
 public:
  /// Longest header that is believed, as in the Python package.
  static constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

  /// Throws CorruptData with path, tensor and both values for anything that
  /// is not as the format says: sizes, ranges, overlaps, holes, types, names
  /// that come twice, a file that is cut short or goes on.
  explicit SafetensorsFile(const std::string& path);

  const std::map<std::string, SafetensorsEntry>& tensors() const noexcept {
    return tensors_;
  }
  const SafetensorsMetadata& metadata() const noexcept { return metadata_; }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// Throws InvalidArgument that quotes `name` if there is none.
  const SafetensorsEntry& at(const std::string& name) const;
  /// Copies the tensor to `out`. Throws InvalidArgument with both values
  /// unless it has this dtype and shape.
  void read(const std::string& name, DType dtype,
            std::span<const std::int64_t> shape, void* out) const;

 private:
  MappedFile file_;
  std::map<std::string, SafetensorsEntry> tensors_;
  SafetensorsMetadata metadata_;
};

}  // namespace ddp
