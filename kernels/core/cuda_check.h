/// \file
/// DDP_CUDA: a CUDA call that throws DeviceError, in words. Only for builds
/// with CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/error.h"

namespace ddp::detail {

/// What a person can do about `error`.
inline const char* cuda_advice(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "the GPU's memory is full: use a smaller batch or another GPU";
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
      return "no usable GPU or driver: see nvidia-smi, or use Device::cpu()";
    case cudaErrorInvalidDevice:
      return "no GPU has this index: see CUDA_VISIBLE_DEVICES";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return "the build is not for this GPU: add its architecture to "
             "CMAKE_CUDA_ARCHITECTURES";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
      return "an earlier kernel failed and the context is lost: run under "
             "compute-sanitizer to find it";
    default: return "see the CUDA run-time API's list of errors";
  }
}

[[noreturn]] inline void throw_cuda(cudaError_t error, const char* call,
                                    const char* file, int line) {
  throw DeviceError(
      concat(call, " (", file, ":", line, ") failed: ", cudaGetErrorName(error),
             ", ", cudaGetErrorString(error), "; ", cuda_advice(error)));
}

}  // namespace ddp::detail

/// Evaluates `call` once and throws unless it gives cudaSuccess.
#define DDP_CUDA(call)                                                       \
  do {                                                                       \
    const cudaError_t ddp_cuda_error_ = (call);                              \
    if (ddp_cuda_error_ != cudaSuccess) [[unlikely]]                         \
      ::ddp::detail::throw_cuda(ddp_cuda_error_, #call, __FILE__, __LINE__); \
  } while (false)
