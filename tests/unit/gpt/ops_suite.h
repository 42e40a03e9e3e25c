/// \file
/// OpsTest: every operation of ops.h against the reference; one suite for both
/// twins and all types.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "examples/gpt/ops/ops.h"
#include "libddp/device/buffer.h"
#include "libddp/device/stream.h"
#include "tests/unit/gpt/reference.h"

namespace gpt {

struct OpsCase {
  std::string name;
  ddp::Device device;
  ddp::DType dtype = ddp::DType::kFloat32;
  ddp::DType gradient = ddp::DType::kFloat32;  ///< of weights
  AttentionShape shape;
  std::int64_t vocabulary = 0;
};

/// Memory on the device and what it holds, widened.
struct TestTensor {
  std::shared_ptr<ddp::Buffer> memory;
  ddp::TensorView view;
  reference::Values values;
};

class OpsTest : public ::testing::TestWithParam<OpsCase> {
 protected:
  void SetUp() override;

  /// Normal numbers times `deviation`, rounded to `dtype`.
  TestTensor random(std::int64_t count, double deviation, ddp::DType dtype);
  TestTensor random(std::int64_t count, double deviation = 1) {
    return random(count, deviation, GetParam().dtype);
  }
  TestTensor upload(const reference::Values& values, ddp::DType dtype);
  /// Full of NaN, so that what is not written shows.
  TestTensor empty(std::int64_t count, ddp::DType dtype);
  TestTensor empty(std::int64_t count) {
    return empty(count, GetParam().dtype);
  }
  TestTensor bytes(std::size_t count);
  TestTensor tokens(const std::vector<std::int32_t>& values);
  std::vector<std::int32_t> random_tokens(std::int64_t count);

  /// A gradient's target: random before if it accumulates, else NaN.
  TestTensor target(std::int64_t count, bool accumulate);
  GradientTarget as_target(const TestTensor& tensor, bool accumulate) const {
    return {tensor.view, accumulate};
  }

  reference::Values read(const TestTensor& tensor) const;
  /// Every element within a tolerance that the types give, relative to the
  /// largest expected magnitude.
  void expect_near(const TestTensor& actual, const reference::Values& expected,
                   const char* what) const;
  /// The same for a target: expected, plus what it held if it accumulates.
  void expect_gradient(const TestTensor& actual, reference::Values expected,
                       bool accumulate, const char* what) const;
  double tolerance(ddp::DType dtype) const;

  AttentionShape shape() const { return GetParam().shape; }
  std::int64_t rows() const { return shape().batch * shape().sequence; }
  std::int64_t width() const { return shape().heads * shape().head_size; }

  std::unique_ptr<ddp::Stream> stream_;
  std::unique_ptr<Ops> ops_;
  std::uint64_t draws_ = 0;
};

/// Names of cases, for INSTANTIATE_TEST_SUITE_P.
std::string case_name(const ::testing::TestParamInfo<OpsCase>& info);

}  // namespace gpt
