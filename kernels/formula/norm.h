/// \file
/// What one element adds to a norm, how parts combine, and the final root.
#pragma once

#include <cmath>

#include "kernels/formula/number.h"
#include "kernels/step_vote.h"

namespace ddp::formula {

/// The larger one; NaN if either is NaN.
DDP_HOST_DEVICE inline double larger(double a, double b) {
  return b > a || b != b ? b : a;
}

template <NormKind kKind>
DDP_HOST_DEVICE inline double norm_term(double element, double power) {
  if constexpr (kKind == NormKind::kTwo) return element * element;
  if constexpr (kKind == NormKind::kPower)
    return pow(magnitude(element), power);
  return magnitude(element);
}

template <NormKind kKind>
DDP_HOST_DEVICE inline double norm_join(double a, double b) {
  return kKind == NormKind::kInfinity ? larger(a, b) : a + b;
}

DDP_HOST_DEVICE inline double norm_join(NormKind kind, double a, double b) {
  return kind == NormKind::kInfinity ? larger(a, b) : a + b;
}

/// The norm from the combined parts.
DDP_HOST_DEVICE inline double norm_root(NormKind kind, double power,
                                        double combined) {
  if (kind == NormKind::kTwo) return square_root(combined);
  if (kind == NormKind::kPower) return pow(combined, 1 / power);
  return combined;
}

DDP_HOST_DEVICE inline std::int64_t earlier(std::int64_t a, std::int64_t b) {
  return b < a ? b : a;
}

}  // namespace ddp::formula
