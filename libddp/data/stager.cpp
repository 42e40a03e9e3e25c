#include "libddp/data/stager.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <thread>

#include "kernels/core/error.h"
#include "libddp/data/atomic_file.h"
#include "libddp/data/checksum.h"
#include "libddp/data/mapped_file.h"

namespace ddp {
namespace {

namespace fs = std::filesystem;

// Between two looks at the deadline: some milliseconds of a fast disk.
constexpr std::size_t kPieceBytes = std::size_t{8} << 20;

struct SourceStatus {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
};

/// What the file beside a copy says about it.
struct Record {
  std::uint64_t checksum = 0;
  SourceStatus source;
};

SourceStatus status_of(const std::string& path) {
  struct stat status {};
  DDP_EXPECT(::stat(path.c_str(), &status) == 0, InvalidArgument, path,
             ": the file to stage cannot be found: ", std::strerror(errno));
  return {static_cast<std::uint64_t>(status.st_size),
          status.st_mtim.tv_sec * std::int64_t{1'000'000'000} +
              status.st_mtim.tv_nsec};
}

void check_time(Deadline deadline, const std::string& doing) {
  DDP_EXPECT(!deadline.has_passed(), Timeout, doing, " was not done within ",
             deadline.seconds_given(),
             " s; raise StagingOptions::timeout or look at the disk");
}

// Holds the folder against other jobs. The lock goes with its descriptor,
// also when the process dies, so what it left half-written is nobody's.
class FolderLock {
 public:
  FolderLock(const fs::path& folder, Deadline deadline) {
    const std::string path = (folder / ".lock").string();
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    DDP_EXPECT(descriptor_ >= 0, Error, path,
               ": cannot be created: ", std::strerror(errno));
    try {
      while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
        DDP_EXPECT(errno == EWOULDBLOCK || errno == EINTR, Error, path,
                   ": cannot be locked: ", std::strerror(errno));
        check_time(deadline, path + ": waiting for another job's staging");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    } catch (...) {
      ::close(descriptor_);
      throw;
    }
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() { ::close(descriptor_); }

 private:
  int descriptor_;
};

std::string record_path(const std::string& copy) { return copy + ".xxh3"; }

std::optional<Record> read_record(const std::string& copy) {
  std::ifstream file(record_path(copy));
  Record record;
  file >> std::hex >> record.checksum >> std::dec >> record.source.bytes >>
      record.source.modified_ns;
  return file ? std::optional(record) : std::nullopt;
}

void write_record(const std::string& copy, const Record& record) {
  AtomicFile file(record_path(copy));
  const std::string line =
      concat(to_hex(record.checksum), " ", record.source.bytes, " ",
             record.source.modified_ns, "\n");
  file.write(line.data(), line.size());
  file.commit();
}

std::uint64_t checksum_of(const std::string& path, Deadline deadline) {
  const MappedFile file(path);
  Checksum checksum;
  for (auto rest = file.bytes(); !rest.empty();) {
    check_time(deadline, "verifying " + path);
    const std::size_t piece = std::min(rest.size(), kPieceBytes);
    checksum.add(rest.first(piece));
    rest = rest.subspan(piece);
  }
  return checksum.value();
}

// The good copy that is there already, if any.
std::optional<StagedFile> find_copy(const std::string& source,
                                    const std::string& copy,
                                    Deadline deadline) {
  const SourceStatus status = status_of(source);
  const auto record = read_record(copy);
  std::error_code error;
  if (!record || record->source.bytes != status.bytes ||
      record->source.modified_ns != status.modified_ns ||
      fs::file_size(copy, error) != status.bytes || error)
    return std::nullopt;
  if (checksum_of(copy, deadline) != record->checksum) return std::nullopt;
  return StagedFile{source, copy, status.bytes, record->checksum, false};
}

// read(2), not a mapping: the shared file may be cut short meanwhile, which
// must be an error here and no signal.
std::uint64_t copy_bytes(const std::string& source, AtomicFile& target,
                         Checksum& checksum, Deadline deadline) {
  std::ifstream file(source, std::ios::binary);
  DDP_EXPECT(file, InvalidArgument, source,
             ": the file to stage cannot be read: ", std::strerror(errno));
  std::vector<char> piece(kPieceBytes);
  std::uint64_t bytes = 0;
  while (file) {
    check_time(deadline, concat("copying ", source, " (", bytes, " bytes)"));
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto count = static_cast<std::size_t>(file.gcount());
    checksum.add(std::as_bytes(std::span(piece.data(), count)));
    target.write(piece.data(), count);
    bytes += count;
  }
  return bytes;
}

StagedFile copy(const std::string& source, const std::string& path,
                Deadline deadline) {
  const SourceStatus status = status_of(source);
  AtomicFile target(path);
  Checksum checksum;
  const std::uint64_t bytes = copy_bytes(source, target, checksum, deadline);
  DDP_EXPECT(bytes == status.bytes, CorruptData, source, ": had ", status.bytes,
             " bytes when staging began, but ", bytes,
             " were read; is it being written?");
  const std::uint64_t written = checksum_of(target.temporary_path(), deadline);
  DDP_EXPECT(written == checksum.value(), CorruptData, path,
             ": the copy's checksum is ", to_hex(written), ", but ", source,
             " has ", to_hex(checksum.value()), "; look at the disk");
  // A record without its copy is harmless; a copy beside an older record
  // would be, too, since its checksum differs.
  write_record(path, {written, status});
  target.commit();
  return {source, path, bytes, written, true};
}

void remove_leftovers(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().find(".tmp.") != std::string::npos)
      fs::remove(entry.path());
}

void check_room(const std::string& cache_dir, std::uint64_t needed,
                std::uint64_t keep_free) {
  const std::uint64_t available = fs::space(cache_dir).available;
  DDP_EXPECT(available >= keep_free && available - keep_free >= needed,
             InvalidArgument, cache_dir, ": staging needs ", needed,
             " bytes and is to leave ", keep_free, " free, but ", available,
             " are available; use another cache_dir or make room");
}

void prepare_folders(const std::vector<std::string>& copies) {
  std::set<fs::path> folders;
  for (const std::string& path : copies)
    folders.insert(fs::path(path).parent_path());
  for (const fs::path& folder : folders) {
    fs::create_directories(folder);
    remove_leftovers(folder);
  }
}

std::vector<StagedFile> stage_locked(const std::vector<std::string>& files,
                                     const std::string& cache_dir,
                                     std::uint64_t keep_free_bytes,
                                     Deadline deadline) {
  std::vector<std::string> copies;
  for (const std::string& file : files)
    copies.push_back(staged_path(cache_dir, file));
  prepare_folders(copies);
  std::vector<std::optional<StagedFile>> found;
  std::uint64_t needed = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    found.push_back(find_copy(files[i], copies[i], deadline));
    if (!found.back()) needed += status_of(files[i]).bytes;
  }
  if (needed > 0) check_room(cache_dir, needed, keep_free_bytes);
  std::vector<StagedFile> staged;
  for (std::size_t i = 0; i < files.size(); ++i)
    staged.push_back(found[i] ? *found[i]
                              : copy(files[i], copies[i], deadline));
  return staged;
}

}  // namespace

std::vector<StagedFile> stage_on_this_machine(
    const std::vector<std::string>& files, const std::string& cache_dir,
    std::uint64_t keep_free_bytes, Deadline deadline) {
  DDP_EXPECT(!cache_dir.empty(), InvalidArgument,
             "staging: cache_dir is empty; name a folder on a local disk");
  try {
    fs::create_directories(cache_dir);
    const FolderLock lock(cache_dir, deadline);
    return stage_locked(files, cache_dir, keep_free_bytes, deadline);
  } catch (const fs::filesystem_error& error) {
    throw Error(concat(cache_dir, ": staging failed: ", error.what()));
  }
}

std::string staged_path(const std::string& cache_dir,
                        const std::string& source) {
  const fs::path absolute = fs::absolute(source).lexically_normal();
  const std::string folder = absolute.parent_path().string();
  const auto key = Checksum::of(std::as_bytes(std::span(folder)));
  return (fs::path(cache_dir) / to_hex(key) / absolute.filename()).string();
}

}  // namespace ddp
