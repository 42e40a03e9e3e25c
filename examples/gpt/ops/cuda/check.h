/// \file
/// GPT_CUDA and GPT_CUBLAS: calls that throw ddp::DeviceError when refused.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "kernels/core/error.h"

#define GPT_CUDA(expression)                                                 \
  do {                                                                       \
    const cudaError_t status_ = (expression);                                \
    DDP_EXPECT(status_ == cudaSuccess, DeviceError,                          \
               "GPT operations: ", #expression, " gave ",                    \
               cudaGetErrorName(status_), ": ", cudaGetErrorString(status_), \
               "; run again with CUDA_LAUNCH_BLOCKING=1 to find the "        \
               "operation");                                                 \
  } while (false)

#define GPT_CUBLAS(expression)                                   \
  do {                                                           \
    const cublasStatus_t status_ = (expression);                 \
    DDP_EXPECT(status_ == CUBLAS_STATUS_SUCCESS, DeviceError,    \
               "GPT operations: ", #expression, " gave ",        \
               cublasLtGetStatusString(status_),                 \
               "; CUBLASLT_LOG_LEVEL=2 makes cuBLASLt say why"); \
  } while (false)
