/// \file
/// LocalGroup: the place where ranks that are threads of one process meet.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "libddp/base/deadline.h"
#include "libddp/comm/fault.h"
#include "libddp/comm/operation.h"

namespace ddp {

/// Shared by the communicators of all ranks of one group. All members are
/// thread-safe.
///
/// A collective is: meet(), read what the others brought, work on one's own
/// part, part(). Once all have met, nobody leaves before all have parted, so
/// the memory that a rank brought is not touched after its call returns, even
/// if the group fails meanwhile.
class LocalGroup {
 public:
  /// What a rank brings to a meeting.
  struct Offer {
    Operation operation;
    const void* input = nullptr;
    void* output = nullptr;
    int color = 0;  ///< color, key and child serve split()
    int key = 0;
    std::shared_ptr<LocalGroup> child;
  };

  /// `names` are the members' descriptions, in the order of their ranks.
  explicit LocalGroup(std::vector<std::string> names);

  int size() const noexcept { return static_cast<int>(names_.size()); }
  const std::string& name_of(int rank) const { return names_[rank]; }

  /// Brings an offer and waits for those of all others. Throws what the group
  /// failed with; on all ranks InvalidArgument if operations differ, Timeout
  /// with the ranks that are missing.
  void meet(int rank, Offer offer, Deadline deadline);
  /// REQUIRES: between meet() and part().
  Offer& offer_of(int rank) { return offers_[rank]; }
  /// Waits until all have come here. Bounded by the others' work alone.
  void part();

  /// Leaves a copy of the bytes for `to`.
  void post(int from, int to, const Operation& operation, const void* data);
  /// Waits for a message and copies it to `data`.
  void take(int from, int to, const Operation& operation, void* data,
            Deadline deadline);

  /// Makes every wait, now and later, throw. The first fault counts.
  void fail(ErrorKind kind, const std::string& text) noexcept;
  void check() const { fault_.check(); }

 private:
  struct Message {
    Operation operation;
    std::vector<char> bytes;
  };
  using Lock = std::unique_lock<std::mutex>;

  void check_agreement();
  std::string missing() const;

  const std::vector<std::string> names_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Fault fault_;
  std::vector<Offer> offers_;
  std::vector<bool> has_arrived_;
  int arrived_ = 0;
  std::uint64_t meetings_ = 0;
  int parting_ = 0;
  std::uint64_t partings_ = 0;
  std::map<std::pair<int, int>, std::deque<Message>> mail_;
};

}  // namespace ddp
