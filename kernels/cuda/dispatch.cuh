/// \file
/// From a DType at run time to a type at compile time.
#pragma once

#include "kernels/core/dtype.h"
#include "kernels/core/error.h"
#include "kernels/core/half.h"

namespace ddp::cuda {

template <typename T>
struct Type {
  using type = T;
};

/// Calls body(Type<T>{}) for the floating type that `dtype` names.
template <typename Body>
void with_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kFloat32: return body(Type<float>{});
    case DType::kFloat64: return body(Type<double>{});
    case DType::kBFloat16: return body(Type<bfloat16>{});
    case DType::kFloat16: return body(Type<float16>{});
    default:
      throw InvalidArgument(concat("dtype ", name(dtype),
                                   " is not floating; pass float32, "
                                   "float64, bfloat16 or float16"));
  }
}

template <typename Body>
void with_types(DType first, DType second, const Body& body) {
  with_type(first,
            [&](auto a) { with_type(second, [&](auto b) { body(a, b); }); });
}

}  // namespace ddp::cuda
