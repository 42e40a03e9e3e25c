#include "libddp/backends/mpi/mpi.h"

#include <unistd.h>

#include <algorithm>

#include "libddp/backends/mpi/algorithms.h"
#include "libddp/backends/mpi/communication_thread.h"
#include "libddp/backends/mpi/mpi_call.h"
#include "libddp/comm/arguments.h"
#include "libddp/comm/failure_subscription.h"

namespace ddp {
namespace {

using mpi::Bounds;
using mpi::Group;

Group group_of(MPI_Comm comm, std::vector<std::string> names) {
  Group group{.comm = comm, .names = std::move(names)};
  DDP_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  DDP_MPI(MPI_Comm_rank(comm, &group.rank));
  DDP_MPI(MPI_Comm_size(comm, &group.size));
  return group;
}

class MpiCommunicator final : public Communicator {
 public:
  /// Takes over `group.comm`.
  MpiCommunicator(const World& world, Group group)
      : world_(world),
        owner_(getpid()),
        thread_(std::make_unique<mpi::CommunicationThread>(
            std::move(group), world.collective_timeout())),
        watch_(std::make_unique<FailureSubscription>(
            world, [this](const Failure& failure) {
              thread_->abort(ErrorKind::kPeerFailure, failure.text);
            })) {}

  ~MpiCommunicator() override {
    watch_.reset();
    MPI_Comm comm = group().comm;
    const bool has_failed = thread_->has_failed();
    thread_.reset();
    // Freeing is a collective call, and would wait for ranks that are gone.
    if (has_failed || getpid() != owner_ || !mpi::is_alive()) return;
    const mpi::CallLock lock;
    (void)MPI_Comm_free(&comm);
  }

  int rank() const noexcept override { return group().rank; }
  int size() const noexcept override { return group().size; }
  Device device() const noexcept override { return Device::cpu(); }
  std::string_view backend() const noexcept override { return "mpi"; }

  Work all_reduce(TensorView tensor, ReduceOp op, StreamView) override {
    return issue(check_all_reduce(*this, tensor, op),
                 [tensor](const Bounds& bounds, const Operation& operation) {
                   mpi::all_reduce(bounds, operation, tensor);
                 });
  }
  Work reduce_scatter(TensorView input, TensorView output, ReduceOp op,
                      StreamView) override {
    return issue(check_reduce_scatter(*this, input, output, op),
                 [=](const Bounds& bounds, const Operation& operation) {
                   mpi::reduce_scatter(bounds, operation, input, output);
                 });
  }
  Work all_gather(TensorView input, TensorView output, StreamView) override {
    return issue(check_all_gather(*this, input, output),
                 [=](const Bounds& bounds, const Operation& operation) {
                   mpi::all_gather(bounds, operation, input, output);
                 });
  }
  Work broadcast(TensorView tensor, int root, StreamView) override {
    return issue(check_broadcast(*this, tensor, root),
                 [tensor](const Bounds& bounds, const Operation& operation) {
                   mpi::broadcast(bounds, operation, tensor);
                 });
  }
  Work all_to_all(TensorView input, TensorView output, StreamView) override {
    return issue(check_all_to_all(*this, input, output),
                 [=](const Bounds& bounds, const Operation& operation) {
                   mpi::all_to_all(bounds, operation, input, output);
                 });
  }
  Work send(TensorView tensor, int to, StreamView) override {
    return issue(check_send(*this, tensor, to),
                 [tensor](const Bounds& bounds, const Operation& operation) {
                   mpi::send(bounds, operation, tensor);
                 });
  }
  Work recv(TensorView tensor, int from, StreamView) override {
    return issue(check_recv(*this, tensor, from),
                 [tensor](const Bounds& bounds, const Operation& operation) {
                   mpi::receive(bounds, operation, tensor);
                 });
  }
  Work barrier(StreamView) override {
    return issue({}, [](const Bounds& bounds, const Operation& operation) {
      mpi::barrier(bounds, operation);
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
    thread_->check();
    if (operation.is_collective()) operation.sequence = sequence_++;
    return thread_->issue(
        describe(operation),
        [operation, run](const Bounds& bounds) { run(bounds, operation); });
  }

  World world_;
  pid_t owner_;
  std::uint64_t sequence_ = 0;
  std::unique_ptr<mpi::CommunicationThread> thread_;
  std::unique_ptr<FailureSubscription> watch_;
};

struct Claim {
  int color;
  int key;
};

// MPI_Comm_split cannot be given up once it has begun, so ranks first tell
// each other, in a way that can, that they have all come.
std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key) {
  std::vector<Claim> claims(static_cast<std::size_t>(size()));
  Claim mine{color, key};
  MPI_Comm part = MPI_COMM_NULL;
  Operation operation{.kind = OperationKind::kAllGather,
                      .dtype = DType::kInt32,
                      .numel = 2 * size()};
  issue(operation, [&](const Bounds& bounds, const Operation& gather) {
    mpi::all_gather(bounds, gather, {&mine, 2, DType::kInt32, Device::cpu()},
                    {claims.data(), 2 * size(), DType::kInt32, Device::cpu()});
    DDP_MPI(MPI_Comm_split(group().comm, color < 0 ? MPI_UNDEFINED : color, key,
                           &part));
  }).wait(Deadline::never());  // it has its own
  if (part == MPI_COMM_NULL) return nullptr;
  std::vector<std::pair<int, int>> members;  // (key, rank)
  for (int other = 0; other < size(); ++other) {
    if (claims[other].color == color)
      members.emplace_back(claims[other].key, other);
  }
  std::sort(members.begin(), members.end());
  std::vector<std::string> names;
  for (const auto& [unused, member] : members)
    names.push_back(group().names[member]);
  return std::make_unique<MpiCommunicator>(world_,
                                           group_of(part, std::move(names)));
}

}  // namespace

std::unique_ptr<Communicator> make_mpi(const World& world, Traffic) {
  DDP_EXPECT(world.mpi_communicator().has_value(), InvalidArgument,
             world.describe(world.rank()),
             ": backend mpi needs ranks that met over MPI; start them with "
             "mpirun or srun --mpi=pmix, or give init_method \"mpi://\"");
  mpi::check_thread_level();
  // Duplicating cannot be given up: meet over the control plane first.
  (void)world.control().exchange("mpi backend", "",
                                 Deadline::in(world.collective_timeout()));
  MPI_Comm comm = MPI_COMM_NULL;
  DDP_MPI(MPI_Comm_dup(MPI_Comm_f2c(*world.mpi_communicator()), &comm));
  std::vector<std::string> names;
  for (int rank = 0; rank < world.size(); ++rank)
    names.push_back(world.describe(rank));
  return std::make_unique<MpiCommunicator>(world,
                                           group_of(comm, std::move(names)));
}

}  // namespace ddp
