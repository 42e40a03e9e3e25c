#include "libddp/backends/local/local.h"

#include <algorithm>
#include <cstring>

#include "kernels/core/error.h"
#include "libddp/backends/host/reduce_elements.h"
#include "libddp/backends/local/group.h"
#include "libddp/backends/local/meeting_place.h"
#include "libddp/comm/arguments.h"
#include "libddp/comm/completed_work.h"
#include "libddp/comm/failure_watch.h"

namespace ddp {
namespace {

using Clock = std::chrono::steady_clock;

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(const World& world, std::shared_ptr<LocalGroup> group,
                    int rank)
      : world_(world),
        group_(std::move(group)),
        rank_(rank),
        watch_(world, [shared = group_](const Failure& failure) {
          shared->fail(ErrorKind::kPeerFailure, failure.text);
        }) {}

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return group_->size(); }
  Device device() const noexcept override { return Device::cpu(); }
  std::string_view backend() const noexcept override { return "local"; }

  Work all_reduce(TensorView tensor, ReduceOp op, StreamView) override {
    return run(check_all_reduce(*this, tensor, op), tensor, tensor,
               [&] { reduce_slice_for_all(tensor, op); });
  }
  Work reduce_scatter(TensorView input, TensorView output, ReduceOp op,
                      StreamView) override {
    return run(check_reduce_scatter(*this, input, output, op), input, output,
               [&] {
                 reduce_from_all(output.data, output.numel * rank_,
                                 output.numel, output.dtype, op);
               });
  }
  Work all_gather(TensorView input, TensorView output, StreamView) override {
    return run(check_all_gather(*this, input, output), input, output, [&] {
      for (int from = 0; from < size(); ++from)
        copy(output.slice(input.numel * from, input.numel), input_of(from));
    });
  }
  Work broadcast(TensorView tensor, int root, StreamView) override {
    return run(check_broadcast(*this, tensor, root), tensor, tensor,
               [&] { copy(tensor, input_of(root)); });
  }
  Work all_to_all(TensorView input, TensorView output, StreamView) override {
    return run(check_all_to_all(*this, input, output), input, output, [&] {
      const std::int64_t count = input.numel / size();
      for (int from = 0; from < size(); ++from) {
        const TensorView slice = output.slice(count * from, count);
        copy(slice, input_of(from) + slice.bytes() * rank_);
      }
    });
  }
  Work send(TensorView tensor, int to, StreamView) override {
    const auto started = Clock::now();
    group_->post(rank_, to, check_send(*this, tensor, to), tensor.data);
    return CompletedWork::since(started);
  }
  Work recv(TensorView tensor, int from, StreamView) override {
    const auto started = Clock::now();
    group_->take(from, rank_, check_recv(*this, tensor, from), tensor.data,
                 deadline());
    return CompletedWork::since(started);
  }
  Work barrier(StreamView) override {
    return run({}, {}, {}, [] {});
  }

  std::unique_ptr<Communicator> split(int color, int key) override;

  Buffer allocate(std::size_t bytes) override {
    return Buffer::allocate(bytes, Device::cpu());
  }
  void abort(const std::string& reason) noexcept override {
    group_->fail(ErrorKind::kError, reason);
  }

 private:
  Deadline deadline() const {
    return Deadline::in(world_.collective_timeout());
  }
  const char* input_of(int rank) const {
    return static_cast<const char*>(group_->offer_of(rank).input);
  }
  static void copy(TensorView to, const char* from) {
    // A rank's own slice in place is the same memory.
    if (to.numel != 0 && to.data != from)
      std::memcpy(to.data, from, to.bytes());
  }

  template <typename Work_>
  Work run(Operation operation, TensorView input, TensorView output,
           Work_ work) {
    const auto started = Clock::now();
    operation.sequence = sequence_;
    group_->meet(rank_,
                 {.operation = operation,
                  .input = input.data,
                  .output = output.data,
                  .child = nullptr},
                 deadline());
    ++sequence_;
    work();
    group_->part();
    return CompletedWork::since(started);
  }

  // Elements [begin, begin + numel) of every rank's input, into `to`.
  void reduce_from_all(void* to, std::int64_t begin, std::int64_t numel,
                       DType dtype, ReduceOp op) {
    if (numel == 0) return;
    std::vector<const void*> sources;
    for (int from = 0; from < size(); ++from)
      sources.push_back(input_of(from) +
                        static_cast<std::size_t>(begin) * size_of(dtype));
    reduce_elements(to, sources, numel, dtype, op, size());
  }

  // Only this rank touches these elements, in the memory of every rank, so
  // the result may overwrite the inputs.
  void reduce_slice_for_all(TensorView tensor, ReduceOp op) {
    const std::int64_t begin =
        tensor.numel / size() * rank_ +
        std::min<std::int64_t>(rank_, tensor.numel % size());
    const std::int64_t numel =
        tensor.numel / size() + (rank_ < tensor.numel % size() ? 1 : 0);
    const TensorView own = tensor.slice(begin, numel);
    reduce_from_all(own.data, begin, numel, tensor.dtype, op);
    for (int to = 0; to < size(); ++to) {
      if (to == rank_ || numel == 0) continue;
      char* other = static_cast<char*>(group_->offer_of(to).output);
      std::memcpy(
          other + static_cast<std::size_t>(begin) * size_of(tensor.dtype),
          own.data, own.bytes());
    }
  }

  World world_;
  std::shared_ptr<LocalGroup> group_;
  int rank_;
  std::uint64_t sequence_ = 0;
  FailureWatch watch_;
};

std::unique_ptr<Communicator> LocalCommunicator::split(int color, int key) {
  group_->meet(rank_,
               {.operation = {.sequence = sequence_},
                .color = color,
                .key = key,
                .child = nullptr},
               deadline());
  ++sequence_;
  std::vector<int> members;
  for (int rank = 0; rank < size(); ++rank) {
    if (color >= 0 && group_->offer_of(rank).color == color)
      members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return group_->offer_of(a).key < group_->offer_of(b).key;
  });
  if (!members.empty() && members.front() == rank_) {
    std::vector<std::string> names;
    for (const int member : members) names.push_back(group_->name_of(member));
    group_->offer_of(rank_).child =
        std::make_shared<LocalGroup>(std::move(names));
  }
  group_->part();  // the new groups are there
  std::shared_ptr<LocalGroup> child;
  if (!members.empty()) child = group_->offer_of(members.front()).child;
  group_->part();  // all have taken theirs
  if (child == nullptr) return nullptr;
  const auto place = std::find(members.begin(), members.end(), rank_);
  return std::make_unique<LocalCommunicator>(
      world_, std::move(child), static_cast<int>(place - members.begin()));
}

}  // namespace

bool ranks_are_threads(const World& world) {
  const auto& peers = world.peers();
  const Peer& self = peers[static_cast<std::size_t>(world.rank())];
  return world.size() > 1 && !world.mpi_communicator() &&
         std::all_of(peers.begin(), peers.end(), [&](const Peer& peer) {
           return peer.host == self.host && peer.pid == self.pid;
         });
}

std::unique_ptr<Communicator> make_local(const World& world, Traffic) {
  DDP_EXPECT(ranks_are_threads(world), InvalidArgument,
             "backend local serves ranks that are threads of one process; "
             "these are processes of their own: use mpi or nccl");
  return std::make_unique<LocalCommunicator>(
      world, meet_in_memory(world, Deadline::in(world.collective_timeout())),
      world.rank());
}

}  // namespace ddp
