/// \file
/// RecordedCommunicator: remembers what was issued, for the step vote and for
/// error texts.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "libddp/comm/operation.h"

namespace ddp {

/// Passes every operation on to `inner`, and keeps a running hash of the
/// collectives and the last few of all operations. Costs some tens of
/// nanoseconds a call.
class RecordedCommunicator final : public Communicator {
 public:
  explicit RecordedCommunicator(std::unique_ptr<Communicator> inner);

  /// Of all collectives so far; equal on all ranks while they agree.
  std::uint64_t hash() const noexcept { return hash_.value(); }
  /// The last operations, newest last: "#16 all_reduce(sum) of 7 float32; …".
  std::string recent() const;

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
  Buffer allocate(std::size_t bytes) override;
  void abort(const std::string& reason) noexcept override;

 private:
  void record(Operation operation);

  std::unique_ptr<Communicator> inner_;
  OperationHash hash_;
  std::uint64_t sequence_ = 0;
  std::deque<Operation> recent_;
};

}  // namespace ddp
