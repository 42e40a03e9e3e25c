#include "libddp/backends/host/reduce_elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/core/half.h"

namespace ddp {
namespace {

TEST(ReduceElements, SumsHalvesInFp32AndRoundsOnce) {
  // 256 + 1 + ... in bf16 sticks at 256; the sum is 263, a tie between 262
  // and 264 that goes to the even one.
  std::vector<bfloat16> values(8, to_bfloat16(1));
  values[0] = to_bfloat16(256);
  std::vector<const void*> sources;
  for (const bfloat16& value : values) sources.push_back(&value);
  bfloat16 result;
  reduce_elements(&result, sources, 1, DType::kBFloat16, ReduceOp::kSum, 8);
  EXPECT_EQ(to_float(result), 264);
  // 263 / 8 = 32.875, which rounds to 33.
  reduce_elements(&result, sources, 1, DType::kBFloat16, ReduceOp::kAverage, 8);
  EXPECT_EQ(to_float(result), 33);
}

TEST(ReduceElements, AveragesFp16WithoutOverflowOfTheSum) {
  std::vector<float16> values(8, to_float16(10000));
  std::vector<const void*> sources;
  for (const float16& value : values) sources.push_back(&value);
  float16 result;
  reduce_elements(&result, sources, 1, DType::kFloat16, ReduceOp::kAverage, 8);
  EXPECT_EQ(to_float(result), 10000);
  values.assign(8, to_float16(1e-7f));
  reduce_elements(&result, sources, 1, DType::kFloat16, ReduceOp::kAverage, 8);
  EXPECT_EQ(result.bits, to_float16(1e-7f).bits);
}

TEST(ReduceElements, TakesSourcesInListOrder) {
  // (1e8 - 1e8) + 1 is 1, whereas 1e8 + (-1e8 + 1) is 0 in fp32.
  const float values[3] = {1e8f, -1e8f, 1};
  const void* forward[] = {&values[0], &values[1], &values[2]};
  const void* backward[] = {&values[2], &values[1], &values[0]};
  float result = 0;
  reduce_elements(&result, forward, 1, DType::kFloat32, ReduceOp::kSum, 3);
  EXPECT_EQ(result, 1);
  reduce_elements(&result, backward, 1, DType::kFloat32, ReduceOp::kSum, 3);
  EXPECT_EQ(result, 0);
}

TEST(ReduceElements, WrapsIntegersAsAllTransportsDo) {
  const std::int8_t values[2] = {100, 100};
  const void* sources[] = {&values[0], &values[1]};
  std::int8_t result = 0;
  reduce_elements(&result, sources, 1, DType::kInt8, ReduceOp::kSum, 2);
  EXPECT_EQ(result, -56);
}

TEST(ReduceElements, LetsNanWinFromAnyRank) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float values[2] = {nan, 1};
  const void* first[] = {&values[0], &values[1]};
  const void* second[] = {&values[1], &values[0]};
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kSum}) {
    for (const auto& sources : {first, second}) {
      float result = 0;
      reduce_elements(&result, {sources, 2}, 1, DType::kFloat32, op, 2);
      EXPECT_TRUE(std::isnan(result)) << name(op);
    }
  }
}

TEST(ReduceElements, MayWriteOverAnyOfItsSources) {
  for (int target = 0; target < 3; ++target) {
    std::vector<std::vector<double>> values(3, std::vector<double>(2500));
    for (int source = 0; source < 3; ++source) {
      for (std::size_t i = 0; i < 2500; ++i)
        values[static_cast<std::size_t>(source)][i] =
            static_cast<double>(i) * (source + 1);
    }
    const void* sources[] = {values[0].data(), values[1].data(),
                             values[2].data()};
    auto& result = values[static_cast<std::size_t>(target)];
    reduce_elements(result.data(), sources, 2500, DType::kFloat64,
                    ReduceOp::kSum, 3);
    for (std::size_t i = 0; i < 2500; ++i)
      ASSERT_EQ(result[i], static_cast<double>(i) * 6);
  }
}

}  // namespace
}  // namespace ddp
