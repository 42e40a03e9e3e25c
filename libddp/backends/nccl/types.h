/// \file
/// NCCL's names of element types and reductions.
#pragma once

#include <nccl.h>

#include "libddp/comm/communicator.h"

namespace ddp::nccl {

constexpr ncclDataType_t type_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32: return ncclFloat32;
    case DType::kFloat64: return ncclFloat64;
    case DType::kBFloat16: return ncclBfloat16;
    case DType::kFloat16: return ncclFloat16;
    case DType::kInt8: return ncclInt8;
    case DType::kUInt8: return ncclUint8;
    case DType::kInt32: return ncclInt32;
    case DType::kUInt32: return ncclUint32;
    case DType::kInt64: return ncclInt64;
    case DType::kUInt64: return ncclUint64;
  }
  return ncclFloat32;
}

/// How an average is taken. ncclAvg multiplies every contribution by 1/W
/// rounded to the element's type before it adds: exact in fp32 and fp64 where
/// W is a power of two, and a pass less over the memory. Otherwise 1/W is not
/// exact, or halves would lose small values, so the sum is scaled afterwards,
/// in fp32 and rounded once more.
constexpr bool averages_by_itself(DType dtype, int ranks) noexcept {
  const bool is_power_of_two = (ranks & (ranks - 1)) == 0;
  return is_power_of_two &&
         (dtype == DType::kFloat32 || dtype == DType::kFloat64);
}

constexpr ncclRedOp_t reduction_of(ReduceOp op, DType dtype,
                                   int ranks) noexcept {
  switch (op) {
    case ReduceOp::kSum: return ncclSum;
    case ReduceOp::kMax: return ncclMax;
    case ReduceOp::kMin: return ncclMin;
    case ReduceOp::kAverage: break;
  }
  return averages_by_itself(dtype, ranks) ? ncclAvg : ncclSum;
}

}  // namespace ddp::nccl
