/// \file
/// Memory that NCCL has been told of.
#pragma once

#include <nccl.h>

#include <cstddef>

#include "libddp/backends/nccl/settings.h"

namespace ddp::nccl {

/// One registration with one communicator; at most one handle is set.
struct Handle {
  void* buffer = nullptr;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  ncclWindow_t window = nullptr;
#endif
};

/// Collective. A window where asked for and possible, else a registered
/// buffer where possible, else nothing: collectives work with all of them.
Handle enroll(ncclComm_t comm, void* data, std::size_t bytes,
              Registration registration);
/// REQUIRES: the communicator has been neither destroyed nor aborted.
void withdraw(ncclComm_t comm, const Handle& handle) noexcept;

/// What NCCL can map into its peers; null if it has none.
void* allocate(std::size_t bytes) noexcept;
void free(void* data) noexcept;

}  // namespace ddp::nccl
