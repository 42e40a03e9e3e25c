/// \file
/// DDP_NCCL: one call of NCCL, checked; and which NCCL it is.
#pragma once

#include <nccl.h>

#include <string>

#include "kernels/core/error.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error "libddp needs NCCL 2.18 or newer"
#endif

namespace ddp::nccl {

/// Code of the library that was loaded, as NCCL_VERSION() makes it: it can
/// be older or newer than the header, NCCL_VERSION_CODE.
int loaded_version() noexcept;

/// "2.28.9".
std::string version_text(int code);

/// The result in words, with what NCCL last said of `comm` (may be null).
std::string error_text(ncclResult_t result, ncclComm_t comm);

}  // namespace ddp::nccl

/// Calls `expression` and throws DeviceError unless it gives ncclSuccess.
/// `comm` is asked what went wrong; `who` begins the text.
#define DDP_NCCL(expression, comm, who)                               \
  do {                                                                \
    const ncclResult_t ddp_result = (expression);                     \
    if (ddp_result != ncclSuccess) [[unlikely]] {                     \
      throw ::ddp::DeviceError(::ddp::concat(                         \
          (who), ": ", #expression,                                   \
          " failed: ", ::ddp::nccl::error_text(ddp_result, (comm)))); \
    }                                                                 \
  } while (false)
