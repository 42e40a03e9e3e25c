#include "libddp/backends/local/group.h"

#include <cstring>

#include "kernels/core/error.h"

namespace ddp {

LocalGroup::LocalGroup(std::vector<std::string> names)
    : names_(std::move(names)),
      offers_(names_.size()),
      has_arrived_(names_.size(), false) {}

void LocalGroup::meet(int rank, Offer offer, Deadline deadline) {
  Lock lock(mutex_);
  fault_.check();
  const std::uint64_t meeting = meetings_;
  const Operation operation = offer.operation;
  offers_[rank] = std::move(offer);
  has_arrived_[rank] = true;
  if (++arrived_ == size()) {
    check_agreement();
    arrived_ = 0;
    has_arrived_.assign(has_arrived_.size(), false);
    ++meetings_;
    changed_.notify_all();
    return;
  }
  const auto is_over = [&] { return meetings_ != meeting || fault_.is_set(); };
  const bool in_time = changed_.wait_until(lock, deadline.at(), is_over);
  // A meeting that took place counts even if the group failed just after:
  // every rank must come to the same answer, and the others are at work.
  if (meetings_ != meeting) return;
  if (!in_time) {
    fault_.set(ErrorKind::kTimeout,
               concat(names_[rank], ": ", describe(operation), " waited ",
                      deadline.seconds_given(), " s for ", missing(),
                      "; see what they do, or raise collective_timeout"));
    changed_.notify_all();
  }
  fault_.throw_it();
}

void LocalGroup::part() {
  Lock lock(mutex_);
  const std::uint64_t parting = partings_;
  if (++parting_ == size()) {
    parting_ = 0;
    ++partings_;
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&] { return partings_ != parting; });
}

void LocalGroup::check_agreement() {
  for (int rank = 1; rank < size(); ++rank) {
    if (offers_[rank].operation == offers_[0].operation) continue;
    fault_.set(ErrorKind::kInvalidArgument,
               concat("ranks issued different operations: ", names_[0], " ",
                      fingerprint(offers_[0].operation), ", ", names_[rank],
                      " ", fingerprint(offers_[rank].operation),
                      "; all ranks must issue the same ones in one order"));
    changed_.notify_all();
    fault_.throw_it();
  }
}

std::string LocalGroup::missing() const {
  std::string list;
  for (int rank = 0; rank < size(); ++rank) {
    if (has_arrived_[rank]) continue;
    list += concat(list.empty() ? "" : ", ", names_[rank]);
  }
  return list;
}

void LocalGroup::post(int from, int to, const Operation& operation,
                      const void* data) {
  Message message{operation, std::vector<char>(operation.bytes())};
  if (!message.bytes.empty())
    std::memcpy(message.bytes.data(), data, message.bytes.size());
  const Lock lock(mutex_);
  fault_.check();
  mail_[{from, to}].push_back(std::move(message));
  changed_.notify_all();
}

void LocalGroup::take(int from, int to, const Operation& operation, void* data,
                      Deadline deadline) {
  Lock lock(mutex_);
  auto& queue = mail_[{from, to}];
  const auto is_over = [&] { return !queue.empty() || fault_.is_set(); };
  if (!changed_.wait_until(lock, deadline.at(), is_over)) {
    fault_.set(ErrorKind::kTimeout,
               concat(names_[to], ": ", describe(operation), " waited ",
                      deadline.seconds_given(), " s for ", names_[from],
                      " to send; see what it does, or raise "
                      "collective_timeout"));
    changed_.notify_all();
  }
  fault_.check();
  const Message message = std::move(queue.front());
  queue.pop_front();
  DDP_EXPECT(message.operation.numel == operation.numel &&
                 message.operation.dtype == operation.dtype,
             InvalidArgument, names_[from], " sent ", message.operation.numel,
             " ", name(message.operation.dtype), " but ", names_[to],
             " receives ", operation.numel, " ", name(operation.dtype));
  if (!message.bytes.empty())
    std::memcpy(data, message.bytes.data(), message.bytes.size());
}

void LocalGroup::fail(ErrorKind kind, const std::string& text) noexcept {
  const Lock lock(mutex_);
  fault_.set(kind, text);
  changed_.notify_all();
}

}  // namespace ddp
