#include "libddp/bootstrap/file_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "kernels/core/error.h"
#include "libddp/bootstrap/counter.h"
#include "libddp/bootstrap/hub_address.h"
#include "libddp/bootstrap/wire_format.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;

/// A lock is held for one append; longer means its holder is stopped.
constexpr auto kLockLimit = 30s;

std::string system_text(int error) {
  return concat(std::strerror(error), " (errno ", error, ")");
}

void write_all(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const auto written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    DDP_EXPECT(written > 0, InvalidArgument, "store file ", path,
               " cannot be written: ", system_text(errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::int64_t check_of(std::string_view key, std::string_view value) {
  return static_cast<std::int64_t>(
      stable_hash(concat(key.size(), ":", key, value)));
}

}  // namespace

/// Holds the lock of the file while it lives. The lock belongs to the open
/// file, so that it also keeps threads of one process apart.
class FileStore::Lock {
 public:
  Lock(int file, const std::string& path) : file_(file) {
    const auto deadline = Deadline::in(kLockLimit);
    auto pause = 1ms;
    while (!change(F_WRLCK)) {
      DDP_EXPECT(errno == EAGAIN || errno == EACCES || errno == EINTR,
                 InvalidArgument, "store file ", path,
                 " cannot be locked: ", system_text(errno),
                 "; use a file system with locks, or tcp://host:port");
      DDP_EXPECT(!deadline.has_passed(), Timeout, "store file ", path,
                 " has been locked by another process for ",
                 deadline.seconds_given(), " s");
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, 20ms);
    }
  }
  ~Lock() { change(F_UNLCK); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  bool change(short type) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return ::fcntl(file_, F_OFD_SETLK, &lock) == 0;
  }
  int file_;
};

FileStore::FileStore(std::string path, std::string token, Role role)
    : path_(std::move(path)), token_(std::move(token)) {
  if (role == Role::kFounder) found();
}

void FileStore::found() {
  const auto draft = concat(path_, ".new.", ::getpid());
  const UniqueFd file(
      ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  DDP_EXPECT(file, InvalidArgument, "store file ", draft,
             " cannot be made: ", system_text(errno),
             "; give a path in a writable folder that all ranks share");
  WireWriter header;
  header.text(token_);
  write_all(file.get(), std::string(kMagic) + header.take(), draft);
  DDP_EXPECT(::rename(draft.c_str(), path_.c_str()) == 0, InvalidArgument,
             "store file ", draft, " cannot be renamed to ", path_, ": ",
             system_text(errno));
}

/// Opens the file that the path names now; false while there is none of ours.
bool FileStore::open_current() {
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (file_ && (!exists || status.st_ino == inode_)) return true;
  if (!exists) return false;
  file_.reset(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!file_ || ::fstat(file_.get(), &status) != 0) return false;
  inode_ = status.st_ino;
  end_ = 0;
  values_.clear();
  if (read_header()) return true;
  file_.reset();
  saw_stale_file_ = true;
  return false;
}

bool FileStore::read_header() {
  const auto bytes = read_from(0);
  if (!bytes.starts_with(kMagic)) return false;
  try {
    WireReader in(std::string_view(bytes).substr(kMagic.size()));
    const auto token = in.text();
    end_ = static_cast<off_t>(kMagic.size() + 8 + token.size());
    return token_.empty() || token == token_;
  } catch (const CorruptData&) {
    return false;
  }
}

std::string FileStore::read_from(off_t offset) const {
  std::string bytes;
  char block[4096];
  for (;;) {
    const auto got = ::pread(file_.get(), block, sizeof(block),
                             offset + static_cast<off_t>(bytes.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(got));
  }
}

void FileStore::read_new_entries() {
  const auto bytes = read_from(end_);
  std::string_view rest = bytes;
  while (!rest.empty()) {
    try {
      WireReader in(rest);
      const auto key = in.text();
      auto value = in.text();
      if (in.number() != check_of(key, value)) return;
      const auto size = 24 + key.size() + value.size();
      rest.remove_prefix(size);
      end_ += static_cast<off_t>(size);
      values_[key] = std::move(value);
    } catch (const CorruptData&) {
      return;  // not whole yet
    }
  }
}

/// REQUIRES: the lock is held and all entries have been read.
void FileStore::append(std::string_view key, std::string_view value) {
  WireWriter out;
  out.text(key);
  out.text(value);
  out.number(check_of(key, value));
  const bool is_ready = ::ftruncate(file_.get(), end_) == 0 &&
                        ::lseek(file_.get(), end_, SEEK_SET) == end_;
  DDP_EXPECT(is_ready, InvalidArgument, "store file ", path_,
             " cannot be written: ", system_text(errno));
  write_all(file_.get(), out.take(), path_);
  read_new_entries();
}

void FileStore::set(std::string_view key, std::string_view value) {
  std::lock_guard guard(mutex_);
  DDP_EXPECT(open_current(), InvalidArgument, describe_file());
  const Lock lock(file_.get(), path_);
  read_new_entries();
  append(key, value);
}

std::int64_t FileStore::add(std::string_view key, std::int64_t amount) {
  std::lock_guard guard(mutex_);
  DDP_EXPECT(open_current(), InvalidArgument, describe_file());
  const Lock lock(file_.get(), path_);
  read_new_entries();
  const auto found = values_.find(key);
  const auto before =
      found == values_.end() ? std::nullopt : std::optional(found->second);
  const auto sum = add_to_counter(key, before, amount);
  append(key, std::to_string(sum));
  return sum;
}

std::optional<std::string> FileStore::find(std::string_view key) {
  std::lock_guard guard(mutex_);
  if (!open_current()) return std::nullopt;
  read_new_entries();
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::string FileStore::get(std::string_view key, Deadline deadline) {
  auto pause = 1ms;
  for (;;) {
    if (auto value = find(key)) return std::move(*value);
    DDP_EXPECT(!deadline.has_passed(), Timeout, "store: key \"", key,
               "\" was not set within ", deadline.seconds_given(), " s in ",
               describe_file());
    std::this_thread::sleep_for(
        std::min<Deadline::Clock::duration>(pause, deadline.remaining()));
    pause = std::min(pause * 2, 50ms);
  }
}

std::string FileStore::describe_file() const {
  if (file_) return concat("store file ", path_);
  return concat("store file ", path_,
                saw_stale_file_
                    ? " (it is left over from another job, or no store)"
                    : " (there is no such file; rank 0 makes it)");
}

void FileStore::remove() noexcept { ::unlink(path_.c_str()); }

}  // namespace ddp
