/// \file
/// FileStore: keys in one file that all ranks can reach.
///
/// The file is a log that only grows:
///
///     | "LIBDDP\r\n" | text token || text key | text value | check | ...
///
/// with numbers and texts as in wire_format.h and `check` the FNV-1a hash of
/// key and value. A key's last entry counts. Writers hold a lock on the file;
/// readers need none, since an entry whose end or check is missing does not
/// yet exist. A writer that died in the middle leaves such an entry, and the
/// next writer cuts it off.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "libddp/base/unique_handle.h"
#include "libddp/bootstrap/store.h"

namespace ddp {

/// Works on local and network file systems that have locks. Thread-safe.
class FileStore : public Store {
 public:
  enum class Role {
    kFounder,  ///< replaces whatever lies there, in one rename
    kMember,   ///< waits for a founder's file
  };
  /// A file of another token is stale: for members it does not exist, unless
  /// their token is empty. Throws InvalidArgument if a founder cannot write
  /// there.
  FileStore(std::string path, std::string token, Role role);

  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;
  std::optional<std::string> find(std::string_view key) override;
  std::int64_t add(std::string_view key, std::int64_t amount) override;

  /// Removes the file; whoever has it open may go on reading.
  void remove() noexcept;

 private:
  class Lock;
  using UniqueFd = UniqueHandle<int, ::close, -1>;

  void found();
  bool open_current();
  bool read_header();
  void read_new_entries();
  void append(std::string_view key, std::string_view value);
  std::string read_from(off_t offset) const;
  std::string describe_file() const;

  std::mutex mutex_;
  const std::string path_;
  const std::string token_;
  UniqueFd file_;
  ino_t inode_ = 0;
  /// End of the last whole entry.
  off_t end_ = 0;
  bool saw_stale_file_ = false;
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace ddp
