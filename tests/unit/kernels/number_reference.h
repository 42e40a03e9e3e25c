/// \file
/// Stored numbers, decoded and rounded by plain double arithmetic: what the
/// kernels are judged against.
#pragma once

#include <cstdint>

#include "kernels/core/dtype.h"

namespace ddp::test {

/// The value at element `index`.
double decode(DType dtype, const void* data, std::int64_t index);
/// Stores `value`, which must be representable or is rounded to nearest even.
void encode(DType dtype, void* data, std::int64_t index, double value);
/// `value` rounded once to nearest even: the nearest number of the type.
double round_to(DType dtype, double value);
/// Distance of neighbouring numbers of the type around `value`.
double spacing(DType dtype, double value);

}  // namespace ddp::test
