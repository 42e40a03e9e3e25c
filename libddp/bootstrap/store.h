/// \file
/// Store: a small key-value map that all ranks of a job can reach.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "libddp/base/deadline.h"

namespace ddp {

/// Keys and values are bytes. All members are thread-safe. Implementations:
/// MemoryStore (threads of one process), FileStore (a shared file system)
/// and TcpStore (a server on rank 0).
class Store {
 public:
  virtual ~Store() = default;

  virtual void set(std::string_view key, std::string_view value) = 0;
  /// Waits until the key exists. Throws Timeout that names the key.
  virtual std::string get(std::string_view key, Deadline deadline) = 0;
  /// The value if the key exists now.
  virtual std::optional<std::string> find(std::string_view key) = 0;
  /// Adds to a counter that starts at 0 and returns the new value.
  virtual std::int64_t add(std::string_view key, std::int64_t amount) = 0;
};

}  // namespace ddp
