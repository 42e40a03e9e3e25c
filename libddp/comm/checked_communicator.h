/// \file
/// CheckedCommunicator: asks all ranks what they are about to do before any
/// of them does it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "libddp/bootstrap/world.h"
#include "libddp/comm/operation.h"

namespace ddp {

/// Wraps any communicator. Before each collective the ranks exchange its
/// fingerprint (kind, type, elements, reduce op, root, position); if two
/// differ, every rank throws InvalidArgument that names both ranks and
/// shows both, and nothing was launched. Costs a round over the control plane
/// for each operation and blocks the host: for finding a fault, not for
/// speed. send and recv are passed on unchecked.
///
/// Over the whole world the exchange is the control plane's. Parts from
/// split() meet in the world's store instead, which keeps about 60 bytes for
/// each operation and rank.
class CheckedCommunicator final : public Communicator {
 public:
  /// `inner` spans all ranks of `world`.
  CheckedCommunicator(std::unique_ptr<Communicator> inner, World world);

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
  void abort(const std::string& reason) noexcept override {
    inner_->abort(reason);
  }

 private:
  /// The ranks of a part, by their ranks in the world, in order.
  CheckedCommunicator(std::unique_ptr<Communicator> inner, World world,
                      std::vector<int> members, std::string group);

  void check(Operation operation);
  void compare(const std::string& mine, std::string_view what);
  std::vector<std::string> exchange(const std::string& mine);
  std::vector<std::string> exchange_in_store(const std::string& mine);

  std::unique_ptr<Communicator> inner_;
  World world_;
  std::vector<int> members_;
  std::string group_;
  std::uint64_t sequence_ = 0;
  std::uint64_t splits_ = 0;
};

}  // namespace ddp
