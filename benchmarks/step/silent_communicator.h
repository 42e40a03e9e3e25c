/// \file
/// SilentCommunicator: a decorator that can leave out the large reductions, so
/// that a step can be timed with and without them.
#pragma once

#include <memory>

#include "libddp/comm/communicator.h"

namespace ddp::bench {

/// Passes everything on. While `*silent`, reductions of more than 4 KiB are
/// not issued: gradients stay local, and everything else is as ever.
class SilentCommunicator final : public Communicator {
 public:
  SilentCommunicator(std::unique_ptr<Communicator> inner,
                     std::shared_ptr<const bool> silent)
      : inner_(std::move(inner)), silent_(std::move(silent)) {}

  int rank() const noexcept override { return inner_->rank(); }
  int size() const noexcept override { return inner_->size(); }
  Device device() const noexcept override { return inner_->device(); }
  std::string_view backend() const noexcept override {
    return inner_->backend();
  }
  Work all_reduce(TensorView tensor, ReduceOp op, StreamView stream) override {
    if (is_left_out(tensor)) return Work();
    return inner_->all_reduce(tensor, op, stream);
  }
  Work reduce_scatter(TensorView input, TensorView output, ReduceOp op,
                      StreamView stream) override {
    if (is_left_out(input)) return Work();
    return inner_->reduce_scatter(input, output, op, stream);
  }
  Work all_gather(TensorView input, TensorView output,
                  StreamView stream) override {
    return inner_->all_gather(input, output, stream);
  }
  Work broadcast(TensorView tensor, int root, StreamView stream) override {
    return inner_->broadcast(tensor, root, stream);
  }
  Work all_to_all(TensorView input, TensorView output,
                  StreamView stream) override {
    return inner_->all_to_all(input, output, stream);
  }
  Work send(TensorView tensor, int to, StreamView stream) override {
    return inner_->send(tensor, to, stream);
  }
  Work recv(TensorView tensor, int from, StreamView stream) override {
    return inner_->recv(tensor, from, stream);
  }
  Work barrier(StreamView stream) override { return inner_->barrier(stream); }
  std::unique_ptr<Communicator> split(int color, int key) override {
    return inner_->split(color, key);
  }
  Buffer allocate(std::size_t bytes) override {
    return inner_->allocate(bytes);
  }
  void abort(const std::string& reason) noexcept override {
    inner_->abort(reason);
  }

 private:
  bool is_left_out(const TensorView& tensor) const {
    return *silent_ && tensor.bytes() > 4096;
  }

  std::unique_ptr<Communicator> inner_;
  std::shared_ptr<const bool> silent_;
};

}  // namespace ddp::bench
