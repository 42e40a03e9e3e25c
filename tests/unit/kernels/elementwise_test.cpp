// Linked with the CPU and with the GPU; machine() says which is tested.
#include "kernels/elementwise.h"

#include <cmath>
#include <limits>

#include "tests/unit/kernels/array.h"

namespace ddp::test {
namespace {

constexpr std::int64_t kSmallSizes[] = {0, 1, 3, 4, 17, 1031};
constexpr std::int64_t kLargeSizes[] = {100'003};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

DType arithmetic(DType a, DType b) {
  const bool wide = a == DType::kFloat64 || b == DType::kFloat64;
  return wide ? DType::kFloat64 : DType::kFloat32;
}

/// Values that a cast must get right: ties, subnormals, overflow, infinity.
std::vector<double> cast_inputs(DType from, std::int64_t n) {
  std::vector<double> values = random_values(from, n, 7, 1e-9, 1e5);
  const double special[] = {
      0.0,        -0.0,       65519.99,    65520.0, 1e-40,
      -kInfinity, 1 + 0x1p-8, 1 + 0x1p-11, 3e-8,    2.9802322387695312e-8};
  for (std::size_t i = 0; i < std::size(special) && i + 5 < values.size(); ++i)
    values[i + 5] = round_to(from, special[i]);
  return values;
}

void expect_cast(DType to, DType from, std::int64_t n, std::int64_t to_offset,
                 std::int64_t from_offset) {
  SCOPED_TRACE(concat(name(from), " to ", name(to), ", ", n, " elements, at ",
                      from_offset, " and ", to_offset));
  const auto input = cast_inputs(from, n);
  const Array source(from, input, from_offset);
  const Array destination(to, std::vector<double>(input.size()), to_offset);
  const TensorPair pair{destination.view(), source.view()};
  cast({&pair, 1}, machine().stream());
  const auto result = destination.values();
  for (std::size_t i = 0; i < input.size(); ++i) {
    ASSERT_EQ(result[i], round_to(to, input[i])) << "element " << i;
    ASSERT_EQ(std::signbit(result[i]), std::signbit(input[i]));
  }
}

TEST(CastSmall, RoundsOnceBetweenAnyTwoTypes) {
  for (const DType to : kFloatingTypes)
    for (const DType from : kFloatingTypes)
      for (const std::int64_t n : kSmallSizes)
        for (const std::int64_t offset : {0, 1, 3})
          expect_cast(to, from, n, offset, n % 2 == 0 ? offset : 0);
}

TEST(CastLarge, RoundsOnceBetweenAnyTwoTypes) {
  for (const DType to : kFloatingTypes)
    for (const DType from : kFloatingTypes)
      for (const std::int64_t n : kLargeSizes) expect_cast(to, from, n, 0, 0);
}

TEST(CastSmall, TakesHundredsOfTensorsOfMixedTypes) {
  std::vector<Array> sources;
  std::vector<Array> destinations;
  std::vector<TensorPair> pairs;
  for (int i = 0; i < 600; ++i) {
    const DType from = kFloatingTypes[i % 4];
    const DType to = kFloatingTypes[(i / 4) % 4];
    const auto values =
        random_values(from, i % 37, static_cast<unsigned>(i + 1));
    sources.emplace_back(from, values, i % 5);
    destinations.emplace_back(to, std::vector<double>(values.size()), i % 3);
    pairs.push_back({destinations.back().view(), sources.back().view()});
  }
  cast(pairs, machine().stream());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto input = sources[i].values();
    const auto result = destinations[i].values();
    for (std::size_t j = 0; j < input.size(); ++j)
      ASSERT_EQ(result[j], round_to(destinations[i].dtype(), input[j]))
          << "tensor " << i << " element " << j;
  }
}

TEST(CastSmall, KeepsTheBitsOfEqualTypesEvenOfNaN) {
  Values<std::uint32_t> from({0x7f800001u, 0xffc12345u, 0x80000000u});
  Values<std::uint32_t> to({0, 0, 0});
  const Device device = machine().stream().device;
  const TensorPair pair{{to.get(), 3, DType::kFloat32, device},
                        {from.get(), 3, DType::kFloat32, device}};
  cast({&pair, 1}, machine().stream());
  EXPECT_EQ(to.values(), from.values());
}

void expect_accumulate(DType to, DType from, std::int64_t n,
                       std::int64_t offset) {
  SCOPED_TRACE(concat(name(to), " += ", name(from), ", ", n, " at ", offset));
  const auto old = random_values(to, n, 1);
  const auto input = random_values(from, n, 2);
  const Array destination(to, old, offset);
  const Array source(from, input, offset);
  const TensorPair pair{destination.view(), source.view()};
  accumulate({&pair, 1}, machine().stream());
  const auto result = destination.values();
  const DType wide = arithmetic(to, from);
  for (std::size_t i = 0; i < input.size(); ++i)
    ASSERT_EQ(result[i], round_to(to, round_to(wide, old[i] + input[i]))) << i;
}

TEST(AccumulateSmall, AddsAnyTwoTypes) {
  for (const DType to : kFloatingTypes)
    for (const DType from : kFloatingTypes)
      for (const std::int64_t n : kSmallSizes)
        for (const std::int64_t offset : {0, 1})
          expect_accumulate(to, from, n, offset);
}

TEST(AccumulateLarge, AddsAnyTwoTypes) {
  for (const DType to : kFloatingTypes)
    for (const DType from : kFloatingTypes)
      expect_accumulate(to, from, 100'003, 0);
}

// A bf16 accumulator would stick at 256.
TEST(AccumulateSmall, CountsTo512InFp32) {
  const Array total(DType::kFloat32, {0.0});
  const Array one(DType::kBFloat16, {1.0});
  const TensorPair pair{total.view(), one.view()};
  for (int i = 0; i < 512; ++i) accumulate({&pair, 1}, machine().stream());
  EXPECT_EQ(total.values(), std::vector<double>{512.0});
}

TEST(ScaleSmall, MultipliesAndRoundsOnce) {
  for (const DType dtype : kFloatingTypes)
    for (const std::int64_t n : kSmallSizes) {
      const auto input = random_values(dtype, n, 3);
      const Array array(dtype, input, n % 3);
      const TensorView view = array.view();
      scale({&view, 1}, 1.0 / 3, machine().stream());
      const DType wide = arithmetic(dtype, dtype);
      const double factor = round_to(wide, 1.0 / 3);
      const auto result = array.values();
      for (std::size_t i = 0; i < input.size(); ++i)
        ASSERT_EQ(result[i], round_to(dtype, round_to(wide, input[i] * factor)))
            << name(dtype) << " element " << i << " of " << n;
    }
}

std::int32_t scaled_non_finite(DType dtype, std::vector<double> values,
                               float factor) {
  const Array array(dtype, values, 1);
  const TensorView view = array.view();
  const Value<float> device_factor(factor);
  const Value<std::int32_t> flag(0);
  scale_checked({&view, 1}, device_factor.get(), flag.get(),
                machine().stream());
  const auto result = array.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected =
        round_to(dtype, round_to(arithmetic(dtype, dtype),
                                 values[i] * static_cast<double>(factor)));
    if (!std::isnan(expected)) {
      EXPECT_EQ(result[i], expected) << i;
    }
  }
  return flag.value();
}

TEST(ScaleCheckedSmall, FlagsAnInfiniteOrNaNResultAndNoOther) {
  for (const DType dtype : kFloatingTypes) {
    SCOPED_TRACE(name(dtype));
    auto values = random_values(dtype, 1031, 4);
    EXPECT_EQ(scaled_non_finite(dtype, values, 0.25f), 0);
    for (const std::size_t position : {std::size_t{0}, std::size_t{1030}}) {
      auto bad = values;
      bad[position] = kInfinity;
      EXPECT_EQ(scaled_non_finite(dtype, bad, 0.25f), 1);
      bad[position] = std::nan("");
      EXPECT_EQ(scaled_non_finite(dtype, bad, 0.25f), 1);
    }
    EXPECT_EQ(scaled_non_finite(dtype, {}, 0.25f), 0);
  }
}

TEST(ScaleCheckedSmall, FlagsAnOverflowThatOnlyRoundingMakes) {
  EXPECT_EQ(scaled_non_finite(DType::kFloat16, {60000.0}, 1.09f), 0);
  EXPECT_EQ(scaled_non_finite(DType::kFloat16, {60000.0}, 1.093f), 1);
  EXPECT_EQ(scaled_non_finite(DType::kFloat32, {3e38}, 2.0f), 1);
}

void expect_sum(DType to, DType from, std::int64_t n, int count,
                std::int64_t offset, bool in_place) {
  SCOPED_TRACE(concat(name(to), " = sum of ", count, " ", name(from), ", ", n,
                      " at ", offset));
  const DType wide = arithmetic(to, from);
  std::vector<Array> sources;
  std::vector<double> expected;
  PeerList list;
  for (int s = 0; s < count; ++s) {
    const auto values = random_values(from, n, static_cast<unsigned>(s + 20));
    sources.emplace_back(from, values, offset);
    list.data[list.count++] = sources.back().data();
    if (s == 0) expected = values;
    for (std::size_t i = 0; s > 0 && i < values.size(); ++i)
      expected[i] = round_to(wide, expected[i] + values[i]);
  }
  const Array other(to, std::vector<double>(static_cast<std::size_t>(n)));
  const Array& destination = in_place ? sources.back() : other;
  sum(destination.view(), list, from, machine().stream());
  const auto result = destination.values();
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(result[i], round_to(to, expected[i])) << i;
}

TEST(SumSmall, AddsSourcesInListOrderAndRoundsOnce) {
  for (const DType to : kFloatingTypes)
    for (const DType from : kFloatingTypes)
      for (const std::int64_t n : kSmallSizes)
        for (const int count : {1, 2, 3, kMaxPeers}) {
          expect_sum(to, from, n, count, n % 3, false);
          if (to == from) expect_sum(to, from, n, count, n % 3, true);
        }
}

TEST(SumLarge, AddsSourcesInListOrderAndRoundsOnce) {
  expect_sum(DType::kBFloat16, DType::kBFloat16, 200'001, 3, 0, true);
  expect_sum(DType::kFloat32, DType::kBFloat16, 200'001, 2, 1, false);
}

// 256 + 7 x 1 over 8: an adder in bf16 gives 32.
TEST(SumSmall, RoundsBf16OnlyAfterTheLastSource) {
  std::vector<Array> sources;
  PeerList list;
  for (int s = 0; s < 8; ++s) {
    sources.emplace_back(DType::kBFloat16,
                         std::vector<double>{s == 0 ? 256.0 : 1.0});
    list.data[list.count++] = sources.back().data();
  }
  const Array total(DType::kFloat32, {0.0});
  sum(total.view(), list, DType::kBFloat16, machine().stream());
  EXPECT_EQ(total.values(), std::vector<double>{263.0});
}

TEST(FillZeroSmall, ClearsExactlyTheTensors) {
  std::vector<Array> arrays;
  std::vector<TensorView> views;
  for (int i = 0; i < 300; ++i) {
    arrays.emplace_back(
        kFloatingTypes[i % 4],
        std::vector<double>(static_cast<std::size_t>(i % 19), 1), i % 4);
    views.push_back(arrays.back().view());
  }
  fill_zero(views, machine().stream());
  for (const Array& array : arrays)
    for (const double value : array.values()) ASSERT_EQ(value, 0.0);
}

TEST(ElementwiseSmall, RefusesWrongArguments) {
  const Array a(DType::kFloat32, {1.0, 2.0});
  const Array b(DType::kFloat32, {1.0});
  const TensorPair unequal{a.view(), b.view()};
  const StreamView stream = machine().stream();
  EXPECT_THROW(cast({&unequal, 1}, stream), InvalidArgument);
  EXPECT_THROW(accumulate({&unequal, 1}, stream), InvalidArgument);
  TensorView integers = a.view();
  integers.dtype = DType::kInt32;
  EXPECT_THROW(scale({&integers, 1}, 2, stream), InvalidArgument);
  TensorView absent = a.view();
  absent.data = nullptr;
  EXPECT_THROW(fill_zero({&absent, 1}, stream), InvalidArgument);
  EXPECT_THROW(sum(a.view(), PeerList{}, DType::kFloat32, stream),
               InvalidArgument);
}

}  // namespace
}  // namespace ddp::test
