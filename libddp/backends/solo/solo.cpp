#include "libddp/backends/solo/solo.h"

#include "kernels/core/error.h"
#include "libddp/comm/arguments.h"
#include "libddp/comm/completed_work.h"
#include "libddp/comm/fault.h"
#include "libddp/device/event.h"
#include "libddp/device/stream.h"

namespace ddp {
namespace {

using Clock = std::chrono::steady_clock;

// A copy on the caller's own stream: done when that stream has got there.
class StreamWork final : public Work::State {
 public:
  explicit StreamWork(StreamView stream) : event_(stream.device) {
    event_.record(stream);
  }

  void wait(Deadline) override { event_.synchronize(); }
  void block(StreamView stream) override { event_.block(stream); }
  bool is_complete() const noexcept override {
    try {
      return event_.is_complete();
    } catch (const Error&) {
      return true;  // the device has failed: wait() says how
    }
  }

 private:
  Event event_;
};

class SoloCommunicator final : public Communicator {
 public:
  explicit SoloCommunicator(Device device) : device_(device) {}

  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 1; }
  Device device() const noexcept override { return device_; }
  std::string_view backend() const noexcept override { return "solo"; }

  Work all_reduce(TensorView tensor, ReduceOp op, StreamView stream) override {
    check_all_reduce(*this, tensor, op);
    return copy(tensor, tensor, stream);
  }
  Work reduce_scatter(TensorView input, TensorView output, ReduceOp op,
                      StreamView stream) override {
    check_reduce_scatter(*this, input, output, op);
    return copy(output, input, stream);
  }
  Work all_gather(TensorView input, TensorView output,
                  StreamView stream) override {
    check_all_gather(*this, input, output);
    return copy(output, input, stream);
  }
  Work broadcast(TensorView tensor, int root, StreamView stream) override {
    check_broadcast(*this, tensor, root);
    return copy(tensor, tensor, stream);
  }
  Work all_to_all(TensorView input, TensorView output,
                  StreamView stream) override {
    check_all_to_all(*this, input, output);
    return copy(output, input, stream);
  }
  Work send(TensorView tensor, int to, StreamView) override {
    fault_.check();
    check_send(*this, tensor, to);  // refuses the only rank there is
    return {};
  }
  Work recv(TensorView tensor, int from, StreamView) override {
    fault_.check();
    check_recv(*this, tensor, from);
    return {};
  }
  Work barrier(StreamView stream) override { return copy({}, {}, stream); }

  std::unique_ptr<Communicator> split(int color, int) override {
    fault_.check();
    if (color < 0) return nullptr;
    return std::make_unique<SoloCommunicator>(device_);
  }
  Buffer allocate(std::size_t bytes) override {
    return Buffer::allocate(bytes, device_);
  }
  void abort(const std::string& reason) noexcept override {
    fault_.set(ErrorKind::kError, reason);
  }

 private:
  Work copy(TensorView to, TensorView from, StreamView stream) {
    fault_.check();
    const auto started = Clock::now();
    if (to.data != from.data)
      copy_bytes(to.data, from.data, to.bytes(), stream);
    // On a GPU even no copy has to wait for what the stream holds before it.
    if (device_.is_cpu()) return CompletedWork::since(started);
    return Work(std::make_shared<StreamWork>(stream));
  }

  Device device_;
  Fault fault_;
};

}  // namespace

std::unique_ptr<Communicator> make_solo(const World& world, Traffic) {
  DDP_EXPECT(world.size() == 1, InvalidArgument,
             "backend solo serves one rank, but the world has ", world.size(),
             "; use mpi, nccl or local");
  return std::make_unique<SoloCommunicator>(world.device());
}

}  // namespace ddp
