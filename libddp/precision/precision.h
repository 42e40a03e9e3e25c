/// \file
/// Precision: which type each number of a training step has.
#pragma once

#include <string>

#include "kernels/core/dtype.h"

namespace ddp {

/// One visible policy. Parameters keep the dtype their ParameterSpec says;
/// the policy says what is kept beside them.
struct Precision {
  std::string name = "fp32";
  /// Type of gradients in their buckets, and so of accumulation over
  /// micro-batches. For fp64 parameters always fp64.
  DType gradient = DType::kFloat32;
  /// Keep an fp32 master copy of weights whose dtype is narrower.
  bool master_weights = true;

  /// Everything fp32.
  static Precision fp32();
  /// bf16 weights, fp32 gradients, accumulation, reduction, master, moments.
  static Precision bf16();
};

/// Type of the gradient of weights of type `weight` under a policy.
DType gradient_dtype(const Precision& precision, DType weight);

}  // namespace ddp
