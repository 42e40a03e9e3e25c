#include "libddp/comm/checked_communicator.h"

#include <algorithm>
#include <numeric>

#include "kernels/core/error.h"
#include "libddp/comm/arguments.h"

namespace ddp {
namespace {

std::vector<int> all_ranks(const World& world) {
  std::vector<int> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Waits for a key, but not past the failure of a rank that may never set it.
std::string get_unless_failed(const World& world, const std::string& key,
                              Deadline deadline) {
  constexpr Milliseconds kSlice{200};
  while (true) {
    if (const auto failure = world.control().failure())
      throw PeerFailure(failure->text);
    if (const auto value = world.store().find(key)) return *value;
    const auto left = deadline.remaining();
    if (left <= kSlice) return world.store().get(key, deadline);
    try {
      return world.store().get(key, Deadline::in(kSlice));
    } catch (const Timeout&) {  // look for failures and wait on
    }
  }
}

}  // namespace

CheckedCommunicator::CheckedCommunicator(std::unique_ptr<Communicator> inner,
                                         World world)
    : inner_(std::move(inner)),
      world_(std::move(world)),
      members_(all_ranks(world_)),
      group_("checked") {
  DDP_EXPECT(inner_->size() == world_.size(), InvalidArgument,
             "a CheckedCommunicator over a world of ", world_.size(),
             " ranks was given a communicator of ", inner_->size());
}

CheckedCommunicator::CheckedCommunicator(std::unique_ptr<Communicator> inner,
                                         World world, std::vector<int> members,
                                         std::string group)
    : inner_(std::move(inner)),
      world_(std::move(world)),
      members_(std::move(members)),
      group_(std::move(group)) {}

void CheckedCommunicator::check(Operation operation) {
  operation.sequence = sequence_;
  compare(fingerprint(operation), name(operation.kind));
}

void CheckedCommunicator::compare(const std::string& mine,
                                  std::string_view what) {
  const std::vector<std::string> all = exchange(mine);
  ++sequence_;
  for (std::size_t other = 1; other < all.size(); ++other) {
    DDP_EXPECT(all[other] == all[0], InvalidArgument, what, " of ", group_,
               ": ranks are about to do different things: ",
               world_.describe(members_[0]), " ", all[0], ", ",
               world_.describe(members_[other]), " ", all[other],
               "; all ranks must issue the same operations in one order");
  }
}

std::vector<std::string> CheckedCommunicator::exchange(
    const std::string& mine) {
  if (static_cast<int>(members_.size()) != world_.size() ||
      group_ != "checked") {
    return exchange_in_store(mine);
  }
  return world_.control().exchange(group_, mine,
                                   Deadline::in(world_.collective_timeout()));
}

std::vector<std::string> CheckedCommunicator::exchange_in_store(
    const std::string& mine) {
  const Deadline deadline = Deadline::in(world_.collective_timeout());
  const std::string prefix = concat(group_, "/", sequence_, "/");
  world_.store().set(prefix + std::to_string(world_.rank()), mine);
  std::vector<std::string> all;
  for (const int member : members_) {
    all.push_back(member == world_.rank()
                      ? mine
                      : get_unless_failed(
                            world_, prefix + std::to_string(member), deadline));
  }
  return all;
}

Work CheckedCommunicator::all_reduce(TensorView tensor, ReduceOp op,
                                     StreamView stream) {
  check(check_all_reduce(*this, tensor, op));
  return inner_->all_reduce(tensor, op, stream);
}

Work CheckedCommunicator::reduce_scatter(TensorView input, TensorView output,
                                         ReduceOp op, StreamView stream) {
  check(check_reduce_scatter(*this, input, output, op));
  return inner_->reduce_scatter(input, output, op, stream);
}

Work CheckedCommunicator::all_gather(TensorView input, TensorView output,
                                     StreamView stream) {
  check(check_all_gather(*this, input, output));
  return inner_->all_gather(input, output, stream);
}

Work CheckedCommunicator::broadcast(TensorView tensor, int root,
                                    StreamView stream) {
  check(check_broadcast(*this, tensor, root));
  return inner_->broadcast(tensor, root, stream);
}

Work CheckedCommunicator::all_to_all(TensorView input, TensorView output,
                                     StreamView stream) {
  check(check_all_to_all(*this, input, output));
  return inner_->all_to_all(input, output, stream);
}

Work CheckedCommunicator::send(TensorView tensor, int to, StreamView stream) {
  return inner_->send(tensor, to, stream);
}

Work CheckedCommunicator::recv(TensorView tensor, int from, StreamView stream) {
  return inner_->recv(tensor, from, stream);
}

Work CheckedCommunicator::barrier(StreamView stream) {
  check({});
  return inner_->barrier(stream);
}

Buffer CheckedCommunicator::allocate(std::size_t bytes) {
  compare(concat("#", sequence_, " allocate of ", bytes, " bytes"), "allocate");
  return inner_->allocate(bytes);
}

std::unique_ptr<Communicator> CheckedCommunicator::split(int color, int key) {
  // Colors and keys differ by right; they tell who is in which part.
  const auto all = exchange(concat(color, " ", key));
  ++sequence_;
  auto part = inner_->split(color, key);
  const std::uint64_t split = splits_++;
  if (part == nullptr) return nullptr;
  std::vector<std::pair<int, int>> keyed;  // (key, rank in the world)
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    int other_color = 0;
    int other_key = 0;
    std::istringstream(all[rank]) >> other_color >> other_key;
    if (other_color == color) keyed.emplace_back(other_key, members_[rank]);
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<int> members;
  for (const auto& [unused, member] : keyed) members.push_back(member);
  return std::unique_ptr<Communicator>(
      new CheckedCommunicator(std::move(part), world_, std::move(members),
                              concat(group_, "/split", split, "/", color)));
}

}  // namespace ddp
