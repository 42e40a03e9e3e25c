/// \file
/// reduce_elements: how backends of host memory combine what ranks hold.
#pragma once

#include <cstdint>
#include <span>

#include "libddp/comm/communicator.h"

namespace ddp {

/// destination[i] = op over sources[0][i], sources[1][i], ... in that order,
/// so that every rank gets the same bits from the same order. Sums of bf16
/// and fp16 are taken in fp32, those of other types in the type itself
/// (integers wrap); kAverage divides by `divisor` before the one rounding.
/// The destination may be one of the sources, and any of them may be alike.
void reduce_elements(void* destination, std::span<const void* const> sources,
                     std::int64_t numel, DType dtype, ReduceOp op, int divisor);

}  // namespace ddp
