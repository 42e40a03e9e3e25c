/// \file
/// ExchangeTable: the messages of exchanges that are not yet complete.
/// Bookkeeping alone; its owner locks it and moves the bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ddp {

class ExchangeTable {
 public:
  /// Who waits for the result, by the number of its request.
  struct Waiter {
    int rank = 0;
    std::int64_t request = 0;
  };
  struct Round {
    std::vector<std::optional<std::string>> messages;
    std::vector<Waiter> waiters;
  };

  explicit ExchangeTable(int world_size) : world_size_(world_size) {}

  /// Puts in one rank's message; the complete round if it was the last one.
  std::optional<Round> add(const std::string& topic, std::int64_t turn,
                           Waiter waiter, std::string message);
  /// Ranks whose message is missing. All, if none has come.
  std::vector<int> missing(const std::string& topic, std::int64_t turn) const;
  /// What is still waited for, for people; empty if nothing is.
  std::string describe_open() const;
  /// Takes out the rounds that `rank` can no longer complete.
  std::vector<std::pair<std::string, Round>> take_lacking(int rank);

 private:
  using Key = std::pair<std::string, std::int64_t>;
  int world_size_;
  std::map<Key, Round> rounds_;
};

/// "joined: 0,1,3; missing: 2".
std::string list_missing(const std::vector<int>& missing, int world_size);

}  // namespace ddp
