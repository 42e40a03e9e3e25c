#include "tests/unit/gpt/ops_suite.h"

#include <cmath>
#include <limits>

#include "examples/gpt/model/random.h"
#include "tests/unit/gpt/parameter_store.h"

namespace gpt {

std::string case_name(const ::testing::TestParamInfo<OpsCase>& info) {
  return info.param.name;
}

void OpsTest::SetUp() {
  stream_ = std::make_unique<ddp::Stream>(GetParam().device);
  ops_ = GetParam().device.is_cpu() ? make_cpu_ops(GetParam().dtype)
                                    : make_cuda_ops(GetParam().dtype, *stream_);
}

TestTensor OpsTest::upload(const reference::Values& values, ddp::DType dtype) {
  TestTensor tensor = empty(static_cast<std::int64_t>(values.size()), dtype);
  const std::vector<float> narrow(values.begin(), values.end());
  gpt::upload(tensor.view, narrow, *stream_);
  tensor.values = read(tensor);
  return tensor;
}

TestTensor OpsTest::random(std::int64_t count, double deviation,
                           ddp::DType dtype) {
  reference::Values values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(deviation *
                     normal(11, draws_, static_cast<std::uint64_t>(i)));
  ++draws_;
  return upload(values, dtype);
}

TestTensor OpsTest::empty(std::int64_t count, ddp::DType dtype) {
  TestTensor tensor = bytes(static_cast<std::size_t>(count) * size_of(dtype));
  tensor.view = tensor.memory->view(0, count, dtype);
  gpt::upload(tensor.view,
              std::vector<float>(static_cast<std::size_t>(count),
                                 std::numeric_limits<float>::quiet_NaN()),
              *stream_);
  return tensor;
}

TestTensor OpsTest::bytes(std::size_t count) {
  TestTensor tensor;
  tensor.memory = std::make_shared<ddp::Buffer>(
      ddp::Buffer::allocate(count, GetParam().device));
  tensor.view = tensor.memory->view(0, static_cast<std::int64_t>(count),
                                    ddp::DType::kUInt8);
  return tensor;
}

TestTensor OpsTest::tokens(const std::vector<std::int32_t>& values) {
  TestTensor tensor = bytes(values.size() * sizeof(std::int32_t));
  tensor.view = tensor.memory->view(0, static_cast<std::int64_t>(values.size()),
                                    ddp::DType::kInt32);
  ddp::copy_bytes(tensor.view.data, values.data(), tensor.view.bytes(),
                  *stream_);
  ddp::synchronize(*stream_);
  return tensor;
}

std::vector<std::int32_t> OpsTest::random_tokens(std::int64_t count) {
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<std::int32_t>(
        random_bits(13, draws_, static_cast<std::uint64_t>(i)) %
        static_cast<std::uint64_t>(GetParam().vocabulary)));
  ++draws_;
  return values;
}

TestTensor OpsTest::target(std::int64_t count, bool accumulate) {
  return accumulate ? random(count, 1, GetParam().gradient)
                    : empty(count, GetParam().gradient);
}

reference::Values OpsTest::read(const TestTensor& tensor) const {
  const std::vector<float> values = download(tensor.view, *stream_);
  return {values.begin(), values.end()};
}

double OpsTest::tolerance(ddp::DType dtype) const {
  // fp32: sums of up to some thousand products, rounded in another order.
  // bf16: half a unit in the eighth place for the result, as much again for a
  // value rounded on the way (softmax weights, values before GELU).
  const bool half = dtype == ddp::DType::kBFloat16 ||
                    GetParam().dtype == ddp::DType::kBFloat16;
  return half ? 1e-2 : 1e-5;
}

void OpsTest::expect_near(const TestTensor& actual,
                          const reference::Values& expected,
                          const char* what) const {
  const reference::Values values = read(actual);
  ASSERT_GE(values.size(), expected.size()) << what;
  double largest = 1e-6;
  for (double value : expected) largest = std::max(largest, std::abs(value));
  const double allowed = tolerance(actual.view.dtype) * largest;
  for (std::size_t i = 0; i < expected.size(); ++i)
    // Not NEAR: a NaN must fail.
    ASSERT_TRUE(std::abs(values[i] - expected[i]) <= allowed)
        << what << " element " << i << ": " << values[i] << " instead of "
        << expected[i] << ", allowed is " << allowed;
}

void OpsTest::expect_gradient(const TestTensor& actual,
                              reference::Values expected, bool accumulate,
                              const char* what) const {
  for (std::size_t i = 0; accumulate && i < expected.size(); ++i)
    expected[i] += actual.values[i];
  expect_near(actual, expected, what);
}

}  // namespace gpt
