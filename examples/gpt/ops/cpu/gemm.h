/// \file
/// gemm: BLAS products of row-major fp32 matrices.
#pragma once

#include <cstdint>

namespace gpt {

/// A matrix operand: row-major with `stride` elements a row; `transposed`
/// says that the product takes it transposed.
struct Matrix {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// c[rows, columns] = a[rows, depth] * b[depth, columns], added to c if
/// `accumulate`. `c` has c_stride elements a row. OpenMP's threads share the
/// rows; OpenBLAS keeps to one thread in each.
void gemm(float* c, std::int64_t c_stride, Matrix a, Matrix b,
          std::int64_t rows, std::int64_t columns, std::int64_t depth,
          bool accumulate);

}  // namespace gpt
