/// \file
/// ParameterSpec: what the user says about one parameter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/core/tensor.h"

namespace ddp {

/// One parameter of the model, in the order in which forward uses it. Any
/// shape: 0-dim parameters have an empty `shape`, and sizes of 0 are allowed.
struct ParameterSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  /// Type of the weights that the model computes with.
  DType dtype = DType::kFloat32;
  /// A frozen parameter takes no gradient; it is broadcast, never updated.
  bool requires_grad = true;
  /// Name of an earlier parameter whose memory this one shares (a tied
  /// embedding), or empty. Counted, updated and reduced once.
  std::string tied_to = {};
  /// Weights in memory of the caller's that stay where they are, or null:
  /// the library gives out memory. Must outlive DataParallel.
  void* adopted_weight = nullptr;
  /// The same for the gradient. Adopted gradients are copied into and out of
  /// their bucket, which costs two passes; prefer the library's memory.
  void* adopted_gradient = nullptr;
};

/// Product of the shape; 1 for a 0-dim parameter.
std::int64_t numel(const ParameterSpec& parameter);

/// "'wte.weight' float32[50257, 768]", for error texts.
std::string to_text(const ParameterSpec& parameter);

/// Where backward writes one gradient.
struct GradientTarget {
  TensorView tensor;
  /// True: add to what is there. False: overwrite, nothing there counts. The
  /// first write of a step overwrites, so gradients are never zeroed.
  bool accumulate = false;
};

}  // namespace ddp
