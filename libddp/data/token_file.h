/// \file
/// TokenFile: a memory-mapped file of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libddp/data/mapped_file.h"

namespace ddp {

enum class TokenFormat {
  /// By name: ".bin" is llm.c's format, everything else is raw bytes.
  kByName,
  /// Every byte of the file is a token, 0 to 255.
  kBytes,
  /// As llm.c's data/tokenize scripts write it, little-endian:
  ///     | int32 x 256: 20240520, version 1, count, 0, 0, ... | uint16 x count
  ///     |
  kLlmC,
};

/// Immutable after opening; any thread may read.
class TokenFile {
 public:
  static constexpr std::int32_t kMagic = 20240520;
  static constexpr std::int32_t kVersion = 1;
  static constexpr std::int64_t kHeaderBytes = 1024;

  /// Throws CorruptData with the path and both values if the file cannot be
  /// read, is empty, or is shorter, longer or otherwise headed than its
  /// format says.
  explicit TokenFile(const std::string& path,
                     TokenFormat format = TokenFormat::kByName);

  /// Number of tokens, at least 1.
  std::int64_t size() const noexcept { return size_; }
  const std::string& path() const noexcept { return file_.path(); }
  TokenFormat format() const noexcept { return format_; }

  /// Writes tokens [first, first + count) to `out`, widened.
  /// REQUIRES: they lie inside the file.
  void read(std::int64_t first, std::int64_t count, std::int32_t* out) const;

 private:
  MappedFile file_;
  TokenFormat format_;
  std::int64_t size_;
};

/// The files that match a shell pattern such as "/data/train_*.bin", sorted
/// by name; a plain path matches itself. Throws InvalidArgument that quotes
/// the pattern if there are none.
std::vector<std::string> match_files(const std::string& pattern);

}  // namespace ddp
