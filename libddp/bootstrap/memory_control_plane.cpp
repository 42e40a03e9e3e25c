#include "libddp/bootstrap/memory_control_plane.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "libddp/bootstrap/exchange_table.h"
#include "libddp/bootstrap/failure_watch.h"

namespace ddp {
namespace {

enum class Presence { kHere, kLeft, kFailed };

/// What the ranks share.
struct Meeting {
  explicit Meeting(int size)
      : exchanges(size),
        presence(static_cast<std::size_t>(size)),
        watches(static_cast<std::size_t>(size)) {}

  std::mutex mutex;
  std::condition_variable changed;
  ExchangeTable exchanges;
  /// Complete rounds; those who wait hold the key and take the round together.
  std::map<std::pair<std::string, std::int64_t>,
           std::shared_ptr<const ExchangeTable::Round>>
      complete;
  std::map<std::pair<std::string, std::int64_t>, int> taken;
  std::vector<Presence> presence;
  std::vector<FailureWatch> watches;
  std::vector<std::string> names;
};

class MemoryControlPlane : public ControlPlane {
 public:
  MemoryControlPlane(std::shared_ptr<Meeting> meeting, int rank)
      : meeting_(std::move(meeting)), rank_(rank) {}

  std::vector<std::string> exchange(std::string_view topic,
                                    std::string_view message,
                                    Deadline deadline) override {
    Meeting& all = *meeting_;
    std::unique_lock lock(all.mutex);
    const std::string topic_name(topic);
    const Key key{topic_name, next_turn_[topic_name]++};
    throw_if_hopeless(key);
    if (auto round = all.exchanges.add(topic_name, key.second, {rank_, 0},
                                       std::string(message))) {
      all.complete[key] =
          std::make_shared<const ExchangeTable::Round>(std::move(*round));
      all.changed.notify_all();
    }
    all.changed.wait_until(lock, deadline.at(), [&] {
      throw_if_hopeless(key);
      return all.complete.contains(key);
    });
    DDP_EXPECT(
        all.complete.contains(key), Timeout, name(rank_), ": exchange \"",
        topic, "\" waited ", deadline.seconds_given(), " s; ",
        list_missing(all.exchanges.missing(topic_name, key.second), size()),
        "; look at what those ranks do, or raise the timeout");
    return take(key);
  }

  void announce_failure(ErrorKind kind,
                        std::string_view text) noexcept override {
    std::string full;
    {
      std::lock_guard lock(meeting_->mutex);
      if (presence(rank_) != Presence::kHere) return;
      presence(rank_) = Presence::kFailed;
      full = name(rank_) + " failed: " + std::string(text);
    }
    for (int other = 0; other < size(); ++other)
      if (other != rank_) watch(other).report({rank_, kind, full});
    std::lock_guard lock(meeting_->mutex);
    meeting_->changed.notify_all();
  }

  std::optional<Failure> failure() const override {
    return watch(rank_).first();
  }
  int on_failure(FailureCallback callback) override {
    return watch(rank_).add(std::move(callback));
  }
  void remove_callback(int id) override { watch(rank_).remove(id); }

  void leave() noexcept override {
    std::lock_guard lock(meeting_->mutex);
    if (presence(rank_) != Presence::kHere) return;
    presence(rank_) = Presence::kLeft;
    meeting_->changed.notify_all();
  }

 private:
  using Key = std::pair<std::string, std::int64_t>;

  int size() const { return static_cast<int>(meeting_->presence.size()); }
  Presence& presence(int rank) {
    return meeting_->presence[static_cast<std::size_t>(rank)];
  }
  FailureWatch& watch(int rank) const {
    return meeting_->watches[static_cast<std::size_t>(rank)];
  }
  const std::string& name(int rank) const {
    return meeting_->names[static_cast<std::size_t>(rank)];
  }

  /// REQUIRES: the mutex is held.
  void throw_if_hopeless(const Key& key) {
    if (meeting_->complete.contains(key)) return;
    if (const auto failed = watch(rank_).first())
      throw PeerFailure(concat("exchange \"", key.first, "\": ", failed->text));
    for (const int rank : meeting_->exchanges.missing(key.first, key.second))
      DDP_EXPECT(presence(rank) != Presence::kLeft, PeerFailure, name(rank),
                 " has left the job; exchange \"", key.first,
                 "\" cannot be completed");
  }

  /// The last rank to take a round removes it.
  std::vector<std::string> take(const Key& key) {
    const auto round = meeting_->complete.at(key);
    if (++meeting_->taken[key] == size()) {
      meeting_->taken.erase(key);
      meeting_->complete.erase(key);
    }
    std::vector<std::string> messages;
    for (const auto& message : round->messages) messages.push_back(*message);
    return messages;
  }

  /// Shared by the control planes of all ranks.
  std::shared_ptr<Meeting> meeting_;
  int rank_;
  std::map<std::string, std::int64_t> next_turn_;
};

}  // namespace

std::vector<std::unique_ptr<ControlPlane>> make_memory_control_planes(
    int size, const std::function<std::string(int rank)>& describe) {
  const auto meeting = std::make_shared<Meeting>(size);
  std::vector<std::unique_ptr<ControlPlane>> planes;
  for (int rank = 0; rank < size; ++rank) {
    meeting->names.push_back(describe(rank));
    planes.push_back(std::make_unique<MemoryControlPlane>(meeting, rank));
  }
  return planes;
}

}  // namespace ddp
