/// \file
/// Communicator: collectives over one group of ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/core/tensor.h"
#include "libddp/comm/work.h"
#include "libddp/device/buffer.h"

namespace ddp {

enum class ReduceOp : std::uint8_t { kSum, kMax, kMin, kAverage };

/// "sum", "max", "min", "average".
std::string_view name(ReduceOp op) noexcept;

/// Collective operations on memory of one device, asynchronous and in order.
///
/// Every operation is enqueued after the work that `stream` holds at the call
/// and runs on a stream (NCCL) or thread (MPI, TCP) of the communicator's own;
/// Work::block(stream) orders later work after it. All ranks of the group
/// must issue the same operations in the same order, from one thread at a
/// time. Where a count of elements is given by a tensor, it must be equal on
/// all ranks. Counts may be 0 and may exceed 2^31.
///
/// Sums of bf16 and fp16 are taken in fp32 and rounded once by the CPU
/// backends; NCCL accumulates in its own way. kAverage divides the sum by
/// size(), for floating types, in the accumulation type before rounding.
///
/// After an operation has failed, timed out, or abort() was called, this and
/// every later call throws what happened.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual Device device() const noexcept = 0;
  /// "nccl", "mpi", "tcp", "local" or "solo".
  virtual std::string_view backend() const noexcept = 0;

  /// In place.
  virtual Work all_reduce(TensorView tensor, ReduceOp op,
                          StreamView stream) = 0;
  /// `input` holds size() equal slices, `output` receives this rank's; it may
  /// be that very slice of `input`. input.numel == size() * output.numel.
  virtual Work reduce_scatter(TensorView input, TensorView output, ReduceOp op,
                              StreamView stream) = 0;
  /// `output` receives every rank's `input` in rank order; `input` may be this
  /// rank's slice of `output`.
  virtual Work all_gather(TensorView input, TensorView output,
                          StreamView stream) = 0;
  virtual Work broadcast(TensorView tensor, int root, StreamView stream) = 0;
  /// Slice i of `input` goes to rank i; slice i of `output` comes from rank i.
  /// The two must not overlap.
  virtual Work all_to_all(TensorView input, TensorView output,
                          StreamView stream) = 0;
  virtual Work send(TensorView tensor, int to, StreamView stream) = 0;
  virtual Work recv(TensorView tensor, int from, StreamView stream) = 0;
  /// Completes once all ranks have issued it.
  virtual Work barrier(StreamView stream) = 0;

  /// Collective: a communicator over the ranks that gave the same `color`,
  /// ordered by (key, rank). A negative color gets none.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  /// Memory of device(), registered with the transport where that helps.
  /// Collective where registration is: all ranks ask for the same bytes.
  virtual Buffer allocate(std::size_t bytes) = 0;

  /// Makes all operations in flight and all later ones fail with `reason` on
  /// this rank. Not collective; callable from any thread; returns soon.
  virtual void abort(const std::string& reason) noexcept = 0;
};

}  // namespace ddp
