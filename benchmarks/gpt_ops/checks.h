/// \file
/// Checks of the CUDA operations against the plain reference.
#pragma once

#include <random>
#include <string>

#include "benchmarks/gpt_ops/device_tensor.h"
#include "benchmarks/gpt_ops/reference.h"
#include "examples/gpt/ops/cuda/cuda_ops.h"

namespace bench {

/// Compares, prints what is off, and counts.
class Checker {
 public:
  Checker(gpt::Ops& checked, ddp::DType type, std::string label)
      : ops(checked), dtype(type), label_(std::move(label)) {}

  /// Largest difference, relative to the largest wanted value.
  void near(const std::string& what, const Values& got, const Values& want,
            double tolerance);
  /// Against the dtype's usual tolerance.
  void near(const std::string& what, const Values& got, const Values& want);
  void same_bits(const std::string& what, const DeviceTensor& a,
                 const DeviceTensor& b);

  /// Normal values as the dtype holds them (rounded to bf16 if need be).
  Values random(std::int64_t numel, double scale = 1);
  /// Whole numbers in [0, below).
  Values random_tokens(std::int64_t numel, std::int64_t below);

  DeviceTensor upload(const Values& values) {
    return {values, dtype, ops.stream()};
  }
  DeviceTensor upload_ints(const Values& values) {
    return {values, ddp::DType::kInt32, ops.stream()};
  }
  /// NaN everywhere.
  DeviceTensor empty(std::int64_t numel) {
    return {numel, dtype, ops.stream()};
  }
  DeviceTensor empty_floats(std::int64_t numel) {
    return {numel, ddp::DType::kFloat32, ops.stream()};
  }

  int failures() const { return failures_; }
  int checks() const { return checks_; }

  gpt::Ops& ops;
  const ddp::DType dtype;

 private:
  void report(bool ok, const std::string& what, double value, double limit);

  std::string label_;
  std::mt19937 engine_{1234};
  int failures_ = 0, checks_ = 0;
};

void check_embedding(Checker& checker);
void check_layernorm(Checker& checker);
void check_linear(Checker& checker);
void check_head_and_loss(Checker& checker);
void check_attention(Checker& checker);

/// All of them for both dtypes and all options; the number that failed.
int run_checks(ddp::StreamView stream);

}  // namespace bench
