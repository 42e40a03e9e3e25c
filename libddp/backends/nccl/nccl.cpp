#include "libddp/backends/nccl/nccl.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/elementwise.h"
#include "libddp/backends/nccl/connection.h"
#include "libddp/backends/nccl/types.h"
#include "libddp/base/log.h"
#include "libddp/comm/arguments.h"
#include "libddp/comm/failure_subscription.h"
#include "libddp/device/cuda_check.h"

namespace ddp {
namespace {

using nccl::Connection;
using nccl::Flight;

class NcclWork final : public Work::State {
 public:
  NcclWork(std::shared_ptr<Connection> connection,
           std::shared_ptr<Flight> flight)
      : connection_(std::move(connection)), flight_(std::move(flight)) {}

  void wait(Deadline deadline) override {
    connection_->wait(*flight_, deadline);
  }
  void block(StreamView stream) override {
    if (stream.device.is_cpu()) return wait(Deadline::never());
    if (!flight_->is_done) connection_->fault().check();
    if (!(flight_->stream == stream)) flight_->end.block(stream);
  }
  bool is_complete() const noexcept override {
    return connection_->is_complete(*flight_);
  }

 private:
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Flight> flight_;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const World& world, std::shared_ptr<Connection> connection)
      : world_(world),
        token_(Buffer::allocate(256, connection->device())),
        connection_(std::move(connection)),
        subscription_(world, [shared = connection_](const Failure& failure) {
          shared->fail(ErrorKind::kPeerFailure, failure.text);
        }) {
    const DeviceGuard guard(device());
    DDP_CUDA(cudaMemset(token_.data(), 0, token_.bytes()));
  }

  int rank() const noexcept override { return connection_->rank(); }
  int size() const noexcept override { return connection_->size(); }
  Device device() const noexcept override { return connection_->device(); }
  std::string_view backend() const noexcept override { return "nccl"; }

  Work all_reduce(TensorView tensor, ReduceOp op, StreamView stream) override {
    return run(
        check_all_reduce(*this, tensor, op), stream,
        [&](ncclComm_t comm, cudaStream_t on) {
          call(ncclAllReduce(tensor.data, tensor.data, count(tensor),
                             type(tensor), reduction(op, tensor), comm, on));
          average(tensor, op, on);
        });
  }
  Work reduce_scatter(TensorView input, TensorView output, ReduceOp op,
                      StreamView stream) override {
    return run(
        check_reduce_scatter(*this, input, output, op), stream,
        [&](ncclComm_t comm, cudaStream_t on) {
          call(ncclReduceScatter(input.data, output.data, count(output),
                                 type(input), reduction(op, input), comm, on));
          average(output, op, on);
        });
  }
  Work all_gather(TensorView input, TensorView output,
                  StreamView stream) override {
    return run(check_all_gather(*this, input, output), stream,
               [&](ncclComm_t comm, cudaStream_t on) {
                 call(ncclAllGather(input.data, output.data, count(input),
                                    type(input), comm, on));
               });
  }
  Work broadcast(TensorView tensor, int root, StreamView stream) override {
    return run(check_broadcast(*this, tensor, root), stream,
               [&](ncclComm_t comm, cudaStream_t on) {
                 call(ncclBroadcast(tensor.data, tensor.data, count(tensor),
                                    type(tensor), root, comm, on));
               });
  }
  Work all_to_all(TensorView input, TensorView output,
                  StreamView stream) override {
    return run(
        check_all_to_all(*this, input, output), stream,
        [&](ncclComm_t comm, cudaStream_t on) {
          const std::int64_t part = input.numel / size();
          call(ncclGroupStart());
          for (int peer = 0; peer < size(); ++peer) {
            const TensorView out = input.slice(part * peer, part);
            const TensorView in = output.slice(part * peer, part);
            call(ncclSend(out.data, count(out), type(out), peer, comm, on));
            call(ncclRecv(in.data, count(in), type(in), peer, comm, on));
          }
          call(ncclGroupEnd());
        });
  }
  Work send(TensorView tensor, int to, StreamView stream) override {
    return run(check_send(*this, tensor, to), stream,
               [&](ncclComm_t comm, cudaStream_t on) {
                 call(ncclSend(tensor.data, count(tensor), type(tensor), to,
                               comm, on));
               });
  }
  Work recv(TensorView tensor, int from, StreamView stream) override {
    return run(check_recv(*this, tensor, from), stream,
               [&](ncclComm_t comm, cudaStream_t on) {
                 call(ncclRecv(tensor.data, count(tensor), type(tensor), from,
                               comm, on));
               });
  }
  Work barrier(StreamView stream) override {
    // NCCL has none; the sum of one zero cannot end before all have begun.
    return run({}, stream, [&](ncclComm_t comm, cudaStream_t on) {
      call(ncclAllReduce(token_.data(), token_.data(), 1, ncclInt32, ncclSum,
                         comm, on));
    });
  }

  std::unique_ptr<Communicator> split(int color, int key) override;
  Buffer allocate(std::size_t bytes) override;
  void abort(const std::string& reason) noexcept override {
    connection_->fail(ErrorKind::kError, reason);
  }

 private:
  static std::size_t count(const TensorView& tensor) {
    return static_cast<std::size_t>(tensor.numel);
  }
  static ncclDataType_t type(const TensorView& tensor) {
    return nccl::type_of(tensor.dtype);
  }
  ncclRedOp_t reduction(ReduceOp op, const TensorView& tensor) const {
    return nccl::reduction_of(op, tensor.dtype, size());
  }
  // The rest of an average that NCCL does not take by itself.
  void average(TensorView tensor, ReduceOp op, cudaStream_t on) const {
    if (op != ReduceOp::kAverage ||
        nccl::averages_by_itself(tensor.dtype, size())) {
      return;
    }
    scale({&tensor, 1}, 1.0 / size(), {device(), on});
  }

  // Turns a refusal into the text of the operation that run() is launching.
  void call(ncclResult_t result) const {
    if (result == ncclSuccess) [[likely]]
      return;
    throw DeviceError(concat(
        connection_->self(), ": ", describe(launching_), " over ", size(),
        " ranks was refused: ", nccl::error_text(result, nullptr)));
  }

  Work run(Operation operation, StreamView stream,
           const Connection::Launch& launch) {
    DDP_EXPECT(stream.device == device(), InvalidArgument, connection_->self(),
               ": ", describe(operation),
               " was given a "
               "stream of ",
               name(stream.device), ", but runs on ", name(device()));
    if (operation.is_collective()) operation.sequence = sequence_++;
    launching_ = operation;
    return Work(std::make_shared<NcclWork>(
        connection_, connection_->run(operation, stream, launch)));
  }

  std::vector<std::array<std::int32_t, 2>> gather_claims(int color, int key);
  bool all_say(bool yes);

  World world_;
  // Freed last: freeing waits for the device, which may be waiting for a rank
  // that is gone until the connection gives up.
  Buffer token_;
  std::shared_ptr<Connection> connection_;
  Operation launching_;
  std::uint64_t sequence_ = 0;
  FailureSubscription subscription_;
};

// Every rank's (color, key). Waits, so nothing is in flight afterwards.
std::vector<std::array<std::int32_t, 2>> NcclCommunicator::gather_claims(
    int color, int key) {
  std::vector<std::array<std::int32_t, 2>> claims(
      static_cast<std::size_t>(size()));
  claims[static_cast<std::size_t>(rank())] = {color, key};
  const std::size_t bytes = claims.size() * sizeof claims[0];
  const Buffer memory = Buffer::allocate(bytes, device());
  const Stream stream(device());
  copy_bytes(memory.data(), claims.data(), bytes, stream);
  const TensorView whole = memory.view(0, 2 * size(), DType::kInt32);
  all_gather(whole.slice(2 * rank(), 2), whole, stream)
      .wait(Deadline::never());  // the watchdog bounds it
  copy_bytes(claims.data(), memory.data(), bytes, stream);
  synchronize(stream);
  return claims;
}

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key) {
  const auto claims = gather_claims(color, key);
  std::vector<std::pair<int, int>> members;  // (key, rank)
  for (int other = 0; other < size(); ++other) {
    const auto& claim = claims[static_cast<std::size_t>(other)];
    if (claim[0] == color) members.emplace_back(claim[1], other);
  }
  std::sort(members.begin(), members.end());
  ncclComm_t part = nullptr;
  connection_->call([&](ncclComm_t comm) {
    ncclConfig_t config = connection_->settings().config;
    DDP_NCCL(ncclCommSplit(comm, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key,
                           &part, &config),
             comm, connection_->self());
  });
  if (part == nullptr) return nullptr;
  std::vector<std::string> names;
  int place = 0;
  for (const auto& [unused, member] : members) {
    if (member == rank()) place = static_cast<int>(names.size());
    names.push_back(connection_->names()[static_cast<std::size_t>(member)]);
  }
  return std::make_unique<NcclCommunicator>(
      world_, std::make_shared<Connection>(
                  part, device(), place, std::move(names),
                  connection_->settings(), connection_->timeout()));
}

// Whether `yes` is true on all ranks.
bool NcclCommunicator::all_say(bool yes) {
  const Buffer memory = Buffer::allocate(sizeof(std::int32_t), device());
  const Stream stream(device());
  std::int32_t flag = yes ? 1 : 0;
  copy_bytes(memory.data(), &flag, sizeof flag, stream);
  all_reduce(memory.view(0, 1, DType::kInt32), ReduceOp::kMin, stream)
      .wait(Deadline::never());
  copy_bytes(&flag, memory.data(), sizeof flag, stream);
  synchronize(stream);
  return flag == 1;
}

Buffer NcclCommunicator::allocate(std::size_t bytes) {
  if (bytes == 0) return Buffer(nullptr, 0, device(), {});
  const DeviceGuard guard(device());
  void* data = nccl::allocate(bytes);
  if (!all_say(data != nullptr)) {
    // Registration is collective: either all ranks have such memory or none.
    if (data != nullptr) nccl::free(data);
    return Buffer::allocate(bytes, device());
  }
  nccl::Handle handle;
  connection_->call([&](ncclComm_t comm) {
    handle =
        nccl::enroll(comm, data, bytes, connection_->settings().registration);
  });
  return Buffer(data, bytes, device(),
                [connection = connection_, handle](void* memory) {
                  connection->withdraw_memory(handle);
                  nccl::free(memory);
                });
}

// Rank 0 makes the id; the control plane has no broadcast, so all exchange.
ncclUniqueId share_unique_id(const World& world) {
  ncclUniqueId id{};
  std::string mine;
  if (world.rank() == 0) {
    DDP_NCCL(ncclGetUniqueId(&id), nullptr, world.describe(0));
    mine.assign(id.internal, sizeof id.internal);
  }
  const auto all = world.control().exchange(
      "nccl id", mine, Deadline::in(world.collective_timeout()));
  DDP_EXPECT(all[0].size() == sizeof id.internal, InvalidArgument,
             "rank 0 sent an id of ", all[0].size(), " bytes, not ",
             sizeof id.internal, "; all ranks must run one version of NCCL");
  std::memcpy(id.internal, all[0].data(), sizeof id.internal);
  return id;
}

}  // namespace

std::unique_ptr<Communicator> make_nccl(const World& world, Traffic traffic) {
  DDP_EXPECT(world.device().is_cuda(), InvalidArgument,
             world.describe(world.rank()),
             ": backend nccl moves memory of GPUs, but this rank computes on "
             "the CPU; use mpi");
  const DeviceGuard guard(world.device());
  const nccl::Settings settings =
      nccl::settings_for(traffic, world.environment());
  if (world.rank() == 0) {
    log(LogLevel::kInfo,
        concat("NCCL ", nccl::version_text(nccl::loaded_version()),
               " is loaded, built against ",
               nccl::version_text(NCCL_VERSION_CODE)));
  }
  const ncclUniqueId id = share_unique_id(world);
  ncclComm_t comm = nullptr;
  ncclConfig_t config = settings.config;
  DDP_NCCL(
      ncclCommInitRankConfig(&comm, world.size(), id, world.rank(), &config),
      nullptr, world.describe(world.rank()));
  std::vector<std::string> names;
  for (int rank = 0; rank < world.size(); ++rank)
    names.push_back(world.describe(rank));
  return std::make_unique<NcclCommunicator>(
      world, std::make_shared<Connection>(comm, world.device(), world.rank(),
                                          std::move(names), settings,
                                          world.collective_timeout()));
}

}  // namespace ddp
