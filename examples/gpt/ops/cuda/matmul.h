/// \file
/// Matmul: matrix products by cuBLASLt, planned once for each shape.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <map>
#include <memory>

#include "examples/gpt/ops/cuda/scratch.h"

namespace gpt::cuda {

/// What a product does to its result on the way out.
enum class Epilogue {
  kNone,
  /// + bias[row]
  kBias,
  /// aux = result + bias[row], d = gelu(aux)
  kGeluAuxBias,
  /// d = result * gelu'(aux)
  kGeluBackward,
  /// bias[row] = sum of op(a)'s row, beside the product
  kBiasGradient,
};

/// d = op(a) * op(b), or d += op(a) * op(b), as cuBLAS sees it: column-major,
/// d is [m, n], op(a) [m, k], op(b) [k, n]. A row-major [r, c] tensor is its
/// column-major transpose [c, r] with leading dimension c.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  std::int64_t lda = 0, ldb = 0, ldd = 0;
  /// Type of a, b, bias and aux; d has its own.
  ddp::DType dtype = ddp::DType::kFloat32;
  ddp::DType result_dtype = ddp::DType::kFloat32;
  bool accumulate = false;
  Epilogue epilogue = Epilogue::kNone;
  void* bias = nullptr;
  /// [m, n] with leading dimension ldd.
  void* aux = nullptr;
};

/// Runs products on one stream; sums are fp32. The first product of a shape
/// asks cuBLASLt's heuristics for an algorithm, which is kept. Without
/// tuning the choice depends on shape and alignment alone, so that runs
/// repeat bit for bit; with tuning the fastest of several is kept, for which
/// the first product of each shape waits for the device.
class Matmul {
 public:
  Matmul(ddp::StreamView stream, bool tune);
  ~Matmul();

  /// False, with nothing enqueued, if cuBLASLt has no algorithm for this
  /// epilogue, shape and alignment.
  [[nodiscard]] bool try_run(const Product& product);
  /// Throws Unavailable where try_run() says false.
  void run(const Product& product);

 private:
  struct Key;
  struct Plan;
  Plan& plan_for(const Product& product);
  std::unique_ptr<Plan> make_plan(const Key& key, const Product& product);
  bool tune(Plan& plan, const Product& product);
  cublasStatus_t launch(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm,
                        const Product& product);

  ddp::StreamView stream_;
  bool tune_;
  cublasLtHandle_t handle_ = nullptr;
  ddp::Buffer workspace_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace gpt::cuda
