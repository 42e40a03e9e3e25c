/// \file
/// MappedFile: a file's bytes as read-only memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ddp {

/// Maps a whole regular file; move-only, and the owner of the mapping. Pages
/// are read when first touched, so opening terabytes costs nothing. The bytes
/// may be read from any thread. The file must not shrink while it is mapped:
/// replace files by rename, as AtomicFile does.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws CorruptData if `path` cannot be opened or is no regular file.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(data_), size_};
  }
  std::size_t size() const noexcept { return size_; }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ddp
