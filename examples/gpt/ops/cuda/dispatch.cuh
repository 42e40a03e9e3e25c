/// \file
/// Calls a template for the dtype of a tensor and the width of access.
#pragma once

#include "examples/gpt/ops/cuda/check.h"
#include "examples/gpt/ops/cuda/vector.cuh"

namespace gpt::cuda {

/// body.operator()<T>() for float or bf16. Others were refused before.
template <typename Body>
void with_dtype(ddp::DType dtype, const Body& body) {
  if (dtype == ddp::DType::kBFloat16)
    body.template operator()<bf16>();
  else
    body.template operator()<float>();
}

/// body.operator()<T, V>() with V as wide as `width` and `pointers` allow.
template <typename Body>
void with_access(ddp::DType dtype, std::int64_t width,
                 std::initializer_list<const void*> pointers,
                 const Body& body) {
  with_dtype(dtype, [&]<typename T>() {
    if (allows_wide<T>(width, pointers))
      body.template operator()<T, kWide<T>>();
    else
      body.template operator()<T, 1>();
  });
}

inline GradientPointer gradient_pointer(const ddp::TensorView& tensor,
                                        bool accumulate) {
  return {tensor.data, tensor.dtype == ddp::DType::kBFloat16, accumulate};
}

}  // namespace gpt::cuda
