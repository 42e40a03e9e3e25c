#include "examples/gpt/ops/cpu/gemm.h"

#include <cblas.h>

#include <algorithm>

#include "examples/gpt/ops/cpu/threads.h"

// Weak, so that another library with the CBLAS interface links as well.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace gpt {
namespace {

/// Threads of OpenBLAS would compete with OpenMP's.
void keep_blas_single_threaded() {
  [[maybe_unused]] static const bool done = [] {
    if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
    return true;
  }();
}

void one_piece(float* c, std::int64_t c_stride, Matrix a, Matrix b,
               std::int64_t rows, std::int64_t columns, std::int64_t depth,
               bool accumulate) {
  const auto as_int = [](std::int64_t n) { return static_cast<int>(n); };
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, as_int(rows),
              as_int(columns), as_int(depth), 1.0f, a.data, as_int(a.stride),
              b.data, as_int(b.stride), accumulate ? 1.0f : 0.0f, c,
              as_int(c_stride));
}

}  // namespace

void gemm(float* c, std::int64_t c_stride, Matrix a, Matrix b,
          std::int64_t rows, std::int64_t columns, std::int64_t depth,
          bool accumulate) {
  // Haswell's and Zen's kernels take twelve rows at a time; cut between such
  // groups, every element is summed as it is without a cut.
  constexpr std::int64_t kGroup = 12;
  keep_blas_single_threaded();
  const std::int64_t groups = (rows + kGroup - 1) / kGroup;
  const std::int64_t threads = std::min<std::int64_t>(cpu_threads(), groups);
  const std::int64_t piece = (groups + threads - 1) / threads * kGroup;
  parallel_for(threads, [&](std::int64_t index) {
    const std::int64_t begin = index * piece;
    const std::int64_t count = std::min(piece, rows - begin);
    if (count <= 0) return;
    Matrix part = a;
    part.data += begin * (a.transposed ? 1 : a.stride);
    one_piece(c + begin * c_stride, c_stride, part, b, count, columns, depth,
              accumulate);
  });
}

}  // namespace gpt
