/// \file
/// Copies, casts, scaling and sums of lists of tensors.
///
/// Each function enqueues its work on `stream`, whose device chooses the
/// twin, and takes a list of tensors so that many small ones cost one launch
/// (on the GPU, one per hundred of equal dtypes). Counts are 64-bit; empty
/// tensors are allowed everywhere. All pointers must be accessible from the
/// stream's device until the work is done. Arithmetic is fp32 (fp64 where an
/// operand is fp64) and rounded once, to nearest even, on the way out. Throws
/// InvalidArgument where lengths differ or a dtype is not floating.
#pragma once

#include <span>

#include "kernels/core/tensor.h"
#include "kernels/peer_list.h"

namespace ddp {

/// One destination and one source of equal length.
struct TensorPair {
  TensorView destination;
  TensorView source;
};

/// Sets every byte to zero. Any dtype.
void fill_zero(std::span<const TensorView> tensors, StreamView stream);

/// destination = source, converted between any two floating dtypes.
void cast(std::span<const TensorPair> pairs, StreamView stream);

/// destination += source, each element in fp32 (or fp64), any two dtypes.
void accumulate(std::span<const TensorPair> pairs, StreamView stream);

/// tensor *= factor. Integers are refused.
void scale(std::span<const TensorView> tensors, double factor,
           StreamView stream);

/// tensor *= *factor, a float on the stream's device, and *non_finite (an
/// int32 there, which the caller has zeroed) becomes 1 if any *result* is
/// infinite or NaN.
void scale_checked(std::span<const TensorView> tensors, const float* factor,
                   std::int32_t* non_finite, StreamView stream);

/// destination = the sum of `sources` in list order, rounded once. The
/// destination may be one of the sources. `sources` hold `source_dtype`.
void sum(TensorView destination, const PeerList& sources, DType source_dtype,
         StreamView stream);

/// Writes to *result (a uint64 on the stream's device) a 64-bit checksum of
/// the tensor's bytes that does not depend on the order of summation: equal
/// on host and device, and equal for equal bits. `seed` distinguishes calls.
void checksum(TensorView tensor, std::uint64_t seed, std::uint64_t* result,
              StreamView stream);

}  // namespace ddp
