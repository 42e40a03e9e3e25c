/// \file
/// MpiTransport: messages of the host backends over an MPI communicator.
#pragma once

#include <mpi.h>

#include "libddp/backends/host/transfers.h"

namespace ddp::mpi {

/// Owns an MPI communicator, and frees it unless abandoned: freeing is a
/// collective call, and would wait for ranks that are gone.
class MpiTransport final : public host::Transport {
 public:
  /// Errors of `comm` are returned from now on.
  explicit MpiTransport(MPI_Comm comm);
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  std::unique_ptr<host::Transfers> start(const host::Bounds& bounds) override;
  std::unique_ptr<host::Transport> split(const host::Bounds& bounds,
                                         const host::Part& part) override;
  void abandon() noexcept override { comm_ = MPI_COMM_NULL; }

 private:
  MPI_Comm comm_;
};

}  // namespace ddp::mpi
