/// \file
/// AtomicFile: a file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ddp {

/// Writes beside `path` and takes its place in commit(): data fsync, one
/// rename, directory fsync. Without commit() the destructor removes what was
/// written, and a file that was at `path` before stays as it is. One thread
/// at a time; writers of one path, in whatever process, do not mix.
class AtomicFile {
 public:
  /// Throws Error with the system's reason if the folder cannot be written.
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Appends. Throws Error that says how much was written and why no more.
  void write(std::span<const std::byte> bytes);
  void write(const void* data, std::size_t size) {
    write({static_cast<const std::byte*>(data), size});
  }
  void commit();

  /// Where the bytes lie until commit(): the path, ".tmp.", and a number.
  const std::string& temporary_path() const noexcept { return temporary_; }

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  std::size_t written_ = 0;
};

}  // namespace ddp
