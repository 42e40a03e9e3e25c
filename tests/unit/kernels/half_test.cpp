#include "kernels/core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/formula/number.h"
#include "tests/unit/kernels/number_reference.h"

namespace ddp {
namespace {

using test::decode;
using test::round_to;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
constexpr DType kDtype =
    std::is_same_v<T, bfloat16> ? DType::kBFloat16 : DType::kFloat16;

template <typename T>
T from_float(float value) {
  return formula::narrow<T>(value);
}

template <typename T>
class Half : public ::testing::Test {};
using Halves = ::testing::Types<bfloat16, float16>;
TYPED_TEST_SUITE(Half, Halves);

TYPED_TEST(Half, EveryPatternHasItsValueAndComesBack) {
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const TypeParam half{static_cast<std::uint16_t>(pattern)};
    const float value = to_float(half);
    const double expected = decode(kDtype<TypeParam>, &half, 0);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << pattern;
      ASSERT_TRUE(std::isnan(to_float(from_float<TypeParam>(value))));
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), expected) << pattern;
    ASSERT_EQ(std::signbit(value), (pattern & 0x8000u) != 0) << pattern;
    ASSERT_EQ(from_float<TypeParam>(value).bits, pattern);
    ASSERT_EQ(formula::narrow<TypeParam>(expected).bits, pattern);
  }
}

TYPED_TEST(Half, RoundsToNearestEvenBetweenEveryPairOfNeighbours) {
  for (std::uint32_t pattern = 0; pattern < 0x7fffu; ++pattern) {
    const TypeParam low{static_cast<std::uint16_t>(pattern)};
    const TypeParam high{static_cast<std::uint16_t>(pattern + 1)};
    const double a = static_cast<double>(to_float(low));
    const double b = static_cast<double>(to_float(high));
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    const auto middle = static_cast<float>((a + b) / 2);
    const std::uint16_t even = (pattern & 1u) ? high.bits : low.bits;
    for (const float sign : {1.0f, -1.0f}) {
      const std::uint16_t bit = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(from_float<TypeParam>(sign * middle).bits, even | bit);
      ASSERT_EQ(
          from_float<TypeParam>(sign * std::nextafter(middle, kInfinity)).bits,
          high.bits | bit);
      ASSERT_EQ(from_float<TypeParam>(sign * std::nextafter(middle, 0.0f)).bits,
                low.bits | bit);
      // From fp64, one rounding: a hair beside the tie is no tie.
      const double tie = sign * (a + b) / 2;
      ASSERT_EQ(formula::narrow<TypeParam>(tie).bits, even | bit);
      ASSERT_EQ(formula::narrow<TypeParam>(
                    std::nextafter(
                        tie, sign * std::numeric_limits<double>::infinity()))
                    .bits,
                high.bits | bit);
      ASSERT_EQ(formula::narrow<TypeParam>(std::nextafter(tie, 0.0)).bits,
                low.bits | bit);
    }
  }
}

TYPED_TEST(Half, AgreesWithPlainRoundingOverAllExponents) {
  for (std::uint64_t i = 0; i < (1u << 20); ++i) {
    const auto bits = static_cast<std::uint32_t>(i * 4093u);
    const float value = detail::float_of(bits);
    const TypeParam half = from_float<TypeParam>(value);
    const double back = decode(kDtype<TypeParam>, &half, 0);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(back)) << bits;
    } else {
      ASSERT_EQ(back, round_to(kDtype<TypeParam>, static_cast<double>(value)))
          << bits;
    }
  }
}

TEST(Float16, OverflowsFromTheTieAboveTheLargestNumber) {
  EXPECT_EQ(to_float16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(to_float16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_float16(-kInfinity).bits, 0xfc00);
}

TEST(Float16, UnderflowsToZeroAtHalfTheSmallestSubnormal) {
  EXPECT_EQ(to_float16(std::ldexp(1.0f, -24)).bits, 1);
  EXPECT_EQ(to_float16(std::ldexp(1.0f, -25)).bits, 0);
  EXPECT_EQ(to_float16(-std::ldexp(1.0f, -25)).bits, 0x8000);
  EXPECT_EQ(to_float16(std::nextafter(std::ldexp(1.0f, -25), 1.0f)).bits, 1);
}

TEST(BFloat16, KeepsNaNQuietWhenItsPayloadIsCutOff) {
  const float nan = detail::float_of(0x7f800001u);
  EXPECT_EQ(to_bfloat16(nan).bits, 0x7fc0);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

}  // namespace
}  // namespace ddp
