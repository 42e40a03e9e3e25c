#include "libddp/backends/host/host_communicator.h"

#include <algorithm>
#include <utility>

#include "kernels/core/error.h"
#include "libddp/backends/host/algorithms.h"
#include "libddp/backends/host/communication_thread.h"
#include "libddp/bootstrap/fork_guard.h"
#include "libddp/comm/arguments.h"
#include "libddp/comm/failure_subscription.h"

namespace ddp::host {
namespace {

class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(std::string_view backend, const World& world, Group group,
                   std::unique_ptr<Transport> transport)
      : backend_(backend),
        world_(world),
        thread_(std::make_unique<CommunicationThread>(
            std::move(group), std::move(transport),
            world.collective_timeout())),
        watch_(std::make_unique<FailureSubscription>(
            world, [this](const Failure& failure) {
              thread_->abort(ErrorKind::kPeerFailure, failure.text);
            })) {}

  // A forked child has no thread to join, its locks may be held for ever, and
  // connections are the parent's: it leaves them be.
  ~HostCommunicator() override {
    if (guard_.is_in_maker()) return;
    (void)watch_.release();
    (void)thread_.release();
  }

  int rank() const noexcept override { return group().rank; }
  int size() const noexcept override { return group().size; }
  Device device() const noexcept override { return Device::cpu(); }
  std::string_view backend() const noexcept override { return backend_; }

  Work all_reduce(TensorView tensor, ReduceOp op, StreamView) override {
    return issue(check_all_reduce(*this, tensor, op),
                 [tensor](const Bounds& bounds, const Operation& operation) {
                   host::all_reduce(bounds, operation, tensor);
                 });
  }
  Work reduce_scatter(TensorView input, TensorView output, ReduceOp op,
                      StreamView) override {
    return issue(check_reduce_scatter(*this, input, output, op),
                 [=](const Bounds& bounds, const Operation& operation) {
                   host::reduce_scatter(bounds, operation, input, output);
                 });
  }
  Work all_gather(TensorView input, TensorView output, StreamView) override {
    return issue(check_all_gather(*this, input, output),
                 [=](const Bounds& bounds, const Operation& operation) {
                   host::all_gather(bounds, operation, input, output);
                 });
  }
  Work broadcast(TensorView tensor, int root, StreamView) override {
    return issue(check_broadcast(*this, tensor, root),
                 [tensor](const Bounds& bounds, const Operation& operation) {
                   host::broadcast(bounds, operation, tensor);
                 });
  }
  Work all_to_all(TensorView input, TensorView output, StreamView) override {
    return issue(check_all_to_all(*this, input, output),
                 [=](const Bounds& bounds, const Operation& operation) {
                   host::all_to_all(bounds, operation, input, output);
                 });
  }
  Work send(TensorView tensor, int to, StreamView) override {
    return issue(check_send(*this, tensor, to),
                 [tensor](const Bounds& bounds, const Operation& operation) {
                   host::send(bounds, operation, tensor);
                 });
  }
  Work recv(TensorView tensor, int from, StreamView) override {
    return issue(check_recv(*this, tensor, from),
                 [tensor](const Bounds& bounds, const Operation& operation) {
                   host::receive(bounds, operation, tensor);
                 });
  }
  Work barrier(StreamView) override {
    return issue({}, [](const Bounds& bounds, const Operation& operation) {
      host::barrier(bounds, operation);
    });
  }

  std::unique_ptr<Communicator> split(int color, int key) override;

  Buffer allocate(std::size_t bytes) override {
    return Buffer::allocate(bytes, Device::cpu());
  }
  void abort(const std::string& reason) noexcept override {
    thread_->abort(ErrorKind::kError, reason);
  }

 private:
  const Group& group() const noexcept { return thread_->group(); }

  template <typename Run>
  Work issue(Operation operation, Run run) {
    guard_.check(name(operation.kind));
    thread_->check();
    if (operation.is_collective()) operation.sequence = sequence_++;
    return thread_->issue(
        describe(operation),
        [operation, run](const Bounds& bounds) { run(bounds, operation); });
  }

  std::string_view backend_;
  World world_;
  std::uint64_t sequence_ = 0;
  ProcessGuard guard_;
  std::unique_ptr<CommunicationThread> thread_;
  std::unique_ptr<FailureSubscription> watch_;  // ends before the thread
};

struct Claim {
  int color;
  int key;
};

std::vector<int> members_of(int color, const std::vector<Claim>& claims) {
  std::vector<std::pair<int, int>> keyed;  // (key, rank)
  for (std::size_t rank = 0; rank < claims.size(); ++rank) {
    if (claims[rank].color == color)
      keyed.emplace_back(claims[rank].key, static_cast<int>(rank));
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<int> members;
  for (const auto& [unused, rank] : keyed) members.push_back(rank);
  return members;
}

std::unique_ptr<Communicator> HostCommunicator::split(int color, int key) {
  Claim mine{color, key};
  Part part{.color = color, .key = key, .members = {}};
  std::unique_ptr<Transport> transport;
  const Operation operation{.kind = OperationKind::kAllGather,
                            .dtype = DType::kInt32,
                            .numel = 2 * size()};
  issue(operation, [&](const Bounds& bounds, const Operation& gather) {
    std::vector<Claim> claims(static_cast<std::size_t>(size()));
    host::all_gather(bounds, gather, {&mine, 2, DType::kInt32, Device::cpu()},
                     {claims.data(), 2 * size(), DType::kInt32, Device::cpu()});
    part.members = members_of(color, claims);
    transport = bounds.transport->split(bounds, part);
  }).wait(Deadline::never());  // it has its own
  if (transport == nullptr) return nullptr;
  Group group{.size = static_cast<int>(part.members.size()), .names = {}};
  for (const int member : part.members) {
    if (member == rank()) group.rank = static_cast<int>(group.names.size());
    group.names.push_back(this->group().names[member]);
  }
  return make_communicator(backend_, world_, std::move(group),
                           std::move(transport));
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(
    std::string_view backend, const World& world, Group group,
    std::unique_ptr<Transport> transport) {
  return std::make_unique<HostCommunicator>(backend, world, std::move(group),
                                            std::move(transport));
}

Group group_of(const World& world) {
  Group group{.rank = world.rank(), .size = world.size(), .names = {}};
  for (int rank = 0; rank < world.size(); ++rank)
    group.names.push_back(world.describe(rank));
  return group;
}

}  // namespace ddp::host
