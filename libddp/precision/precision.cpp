#include "libddp/precision/precision.h"

namespace ddp {

Precision Precision::fp32() { return {}; }

Precision Precision::bf16() {
  return {.name = "bf16",
          .gradient = DType::kFloat32,
          .master_weights = true};
}

DType gradient_dtype(const Precision& precision, DType weight) {
  return weight == DType::kFloat64 ? DType::kFloat64 : precision.gradient;
}

}  // namespace ddp
