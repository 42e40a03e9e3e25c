#include "libddp/bootstrap/memory_store.h"

#include "kernels/core/error.h"
#include "libddp/bootstrap/counter.h"

namespace ddp {

void MemoryStore::set(std::string_view key, std::string_view value) {
  std::lock_guard lock(mutex_);
  values_[std::string(key)] = value;
  changed_.notify_all();
}

std::string MemoryStore::get(std::string_view key, Deadline deadline) {
  std::unique_lock lock(mutex_);
  auto found = values_.end();
  const bool exists = changed_.wait_until(lock, deadline.at(), [&] {
    found = values_.find(key);
    return found != values_.end();
  });
  DDP_EXPECT(exists, Timeout, "store: key \"", key, "\" was not set within ",
             deadline.seconds_given(), " s");
  return found->second;
}

std::optional<std::string> MemoryStore::find(std::string_view key) {
  std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::int64_t MemoryStore::add(std::string_view key, std::int64_t amount) {
  std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  const auto before =
      found == values_.end() ? std::nullopt : std::optional(found->second);
  const auto sum = add_to_counter(key, before, amount);
  values_[std::string(key)] = std::to_string(sum);
  changed_.notify_all();
  return sum;
}

}  // namespace ddp
