/// \file
/// Floor: the collective that a Communicator is compared with, called raw.
#pragma once

#include <memory>

#include "libddp/backends/backend.h"

namespace ddp::bench {

/// The three collectives of data parallelism in place, without a library of
/// ours between. On a GPU they run on `stream`; on the CPU they are done when
/// the call returns.
class Floor {
 public:
  virtual ~Floor() = default;
  virtual std::string_view name() const = 0;
  /// Registers memory as the backend's allocate() does. Collective.
  virtual void enroll(TensorView memory) = 0;
  virtual void all_reduce(TensorView tensor, StreamView stream) = 0;
  virtual void reduce_scatter(TensorView whole, TensorView own,
                              StreamView stream) = 0;
  virtual void all_gather(TensorView own, TensorView whole,
                          StreamView stream) = 0;
};

/// Blocking calls of MPI, one for each operation; null without MPI.
std::unique_ptr<Floor> make_mpi_floor(const World& world);
/// Calls of NCCL on a communicator of its own; null without NCCL.
std::unique_ptr<Floor> make_nccl_floor(const World& world);

}  // namespace ddp::bench
