#include "libddp/data/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "kernels/core/error.h"

namespace ddp {
namespace {

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter = 0;
  return concat(path, ".tmp.", ::getpid(), ".", counter++);
}

[[noreturn]] void fail(const std::string& path, std::string_view what) {
  const int error = errno;
  throw Error(concat(path, ": ", what, ": ", std::strerror(error)));
}

// The rename itself must reach the disk, too.
void sync_folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const int descriptor =
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(folder, "the folder cannot be opened");
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  // Some network file systems have no fsync of folders.
  if (result != 0 && error != EINVAL)
    fail(folder, "the folder cannot be synced");
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(temporary_name(path_)) {
  descriptor_ = ::open(temporary_.c_str(),
                       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(temporary_, "cannot be created");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  // Linux writes at most 2 GiB - 4 KiB a call.
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t count =
        ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMostBytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      fail(temporary_, concat("writing stopped after ", written_, " bytes"));
    written_ += static_cast<std::size_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail(temporary_, "cannot be synced");
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) fail(temporary_, "cannot be closed");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail(path_, concat("cannot be replaced by ", temporary_));
  temporary_.clear();
  sync_folder_of(path_);
}

}  // namespace ddp
