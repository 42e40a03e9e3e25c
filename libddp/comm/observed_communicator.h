/// \file
/// ObservedCommunicator: tells an Observer when each operation ran.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "libddp/comm/observer.h"
#include "libddp/device/event.h"
#include "libddp/device/stream.h"

namespace ddp {

/// Wraps any communicator. Completions are noticed when an operation is
/// issued or poll() is called: nothing is waited for, on host or device. On
/// a GPU each operation costs two timed events and a side stream that waits
/// for it. One thread at a time, except abort().
class ObservedCommunicator final : public Communicator {
 public:
  /// `observer` is shared with the communicators that split() returns.
  ObservedCommunicator(std::unique_ptr<Communicator> inner,
                       std::shared_ptr<Observer> observer);

  /// Reports the operations that have completed since.
  void poll();

  int rank() const noexcept override { return inner_->rank(); }
  int size() const noexcept override { return inner_->size(); }
  Device device() const noexcept override { return inner_->device(); }
  std::string_view backend() const noexcept override {
    return inner_->backend();
  }
  Work all_reduce(TensorView tensor, ReduceOp op, StreamView stream) override;
  Work reduce_scatter(TensorView input, TensorView output, ReduceOp op,
                      StreamView stream) override;
  Work all_gather(TensorView input, TensorView output,
                  StreamView stream) override;
  Work broadcast(TensorView tensor, int root, StreamView stream) override;
  Work all_to_all(TensorView input, TensorView output,
                  StreamView stream) override;
  Work send(TensorView tensor, int to, StreamView stream) override;
  Work recv(TensorView tensor, int from, StreamView stream) override;
  Work barrier(StreamView stream) override;
  std::unique_ptr<Communicator> split(int color, int key) override;
  Buffer allocate(std::size_t bytes) override {
    return inner_->allocate(bytes);
  }
  void abort(const std::string& reason) noexcept override {
    inner_->abort(reason);
  }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Pending {
    Operation operation;
    TimePoint issued;
    TimePoint returned;
    Work work;
    std::optional<Event> ready;  // both on a GPU only
    std::optional<Event> ended;
  };

  Work observe(Operation operation, StreamView stream,
               const std::function<Work()>& issue);
  void report(const Pending& pending);
  Work::Span span_of(const Pending& pending);
  TimePoint time_of(const Event& event) const;

  std::unique_ptr<Communicator> inner_;
  std::shared_ptr<Observer> observer_;
  std::uint64_t sequence_ = 0;
  std::deque<Pending> pending_;
  // Where both clocks are known, and where ends are recorded (GPU).
  Stream side_;
  Event anchor_;
  TimePoint anchor_time_;
  TimePoint last_end_;
};

}  // namespace ddp
