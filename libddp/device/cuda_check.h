/// \file
/// DDP_CUDA: turns a refused CUDA runtime call into DeviceError. For sources
/// that are compiled with DDP_HAS_CUDA; not a public header.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/error.h"

namespace ddp::detail {

[[noreturn]] inline void throw_cuda_error(cudaError_t result,
                                          const char* expression) {
  // Clears an error that is not sticky, so that the next call is not blamed.
  (void)cudaGetLastError();
  throw DeviceError(concat(expression, " failed: ", cudaGetErrorName(result),
                           ", ", cudaGetErrorString(result)));
}

}  // namespace ddp::detail

/// Calls `expression` and throws DeviceError unless it gives cudaSuccess.
#define DDP_CUDA(expression)                                    \
  do {                                                          \
    const cudaError_t ddp_result = (expression);                \
    if (ddp_result != cudaSuccess) [[unlikely]]                 \
      ::ddp::detail::throw_cuda_error(ddp_result, #expression); \
  } while (false)
