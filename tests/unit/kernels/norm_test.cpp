// Linked with the CPU and with the GPU; machine() says which is tested.
#include <cmath>
#include <limits>

#include "kernels/step_vote.h"
#include "tests/unit/kernels/array.h"

namespace ddp::test {
namespace {

constexpr NormKind kKinds[] = {NormKind::kTwo, NormKind::kInfinity,
                               NormKind::kOne, NormKind::kPower};

/// Several runs of gradients, each the sum of some sources.
class Gradients {
 public:
  explicit Gradients(DType dtype) : dtype_(dtype) {}

  /// values[source][element]
  void add(const std::vector<std::vector<double>>& values,
           std::int64_t position, std::int64_t offset) {
    UpdateRun run;
    std::vector<double> sum;
    for (const auto& source : values) {
      arrays_.emplace_back(dtype_, source, offset);
      run.gradient.data[run.gradient.count++] = arrays_.back().data();
      sum.resize(source.size());
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] = round_to(wide(), sum[i] + source[i]);
    }
    run.weight = run.gradient;
    run.numel = static_cast<std::int64_t>(values[0].size());
    run.position = position;
    runs_.push_back(run);
    sums_.insert(sums_.end(), sum.begin(), sum.end());
  }

  NormPart norm_of(NormKind kind, double power) const {
    const UpdateTable table(runs_, DType::kFloat32, dtype_,
                            machine().stream().device);
    const Value<NormPart> part(NormPart{-1, -1});
    norm(table, kind, power, part.get(), machine().stream());
    return part.value();
  }

  double expected(NormKind kind, double power) const {
    long double total = 0;
    for (const double x : sums_) {
      const double a = std::fabs(x);
      if (kind == NormKind::kTwo) total += static_cast<long double>(a) * a;
      if (kind == NormKind::kOne) total += a;
      if (kind == NormKind::kPower) total += std::pow(a, power);
      if (kind == NormKind::kInfinity)
        total = std::max(total, static_cast<long double>(a));
    }
    return static_cast<double>(total);
  }

 private:
  DType wide() const {
    return dtype_ == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  }

  DType dtype_;
  std::vector<Array> arrays_;
  std::vector<UpdateRun> runs_;
  std::vector<double> sums_;
};

void expect_norms(const Gradients& gradients) {
  for (const NormKind kind : kKinds) {
    const NormPart part = gradients.norm_of(kind, 3.5);
    const double expected = gradients.expected(kind, 3.5);
    EXPECT_NEAR(part.value, expected, 1e-12 * expected)
        << "kind " << static_cast<int>(kind);
    EXPECT_EQ(part.first_non_finite, kAllFinite);
    const NormPart again = gradients.norm_of(kind, 3.5);
    EXPECT_EQ(part.value, again.value);
  }
}

std::vector<std::vector<double>> sources(DType dtype, int count,
                                         std::int64_t n) {
  std::vector<std::vector<double>> values;
  for (int s = 0; s < count; ++s)
    values.push_back(random_values(dtype, n, static_cast<unsigned>(s + 1 + n)));
  return values;
}

TEST(NormSmall, AgreesWithDoubleArithmetic) {
  for (const DType dtype : kFloatingTypes)
    for (const int count : {1, 2, 3})
      for (const std::int64_t n : {0, 1, 17, 1031}) {
        SCOPED_TRACE(concat(name(dtype), ", ", count, " sources of ", n));
        Gradients gradients(dtype);
        gradients.add(sources(dtype, count, n), 0, n % 4);
        expect_norms(gradients);
      }
}

TEST(NormSmall, CoversManyRuns) {
  Gradients gradients(DType::kFloat32);
  for (int i = 0; i < 500; ++i)
    gradients.add(sources(DType::kFloat32, 1 + i % 3, i % 41), i * 100, i % 4);
  expect_norms(gradients);
}

TEST(NormLarge, AgreesWithDoubleArithmeticOverManyChunks) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    Gradients gradients(dtype);
    gradients.add(sources(dtype, 2, 300'007), 0, 1);
    expect_norms(gradients);
  }
}

TEST(NormSmall, SquaresWithoutOverflow) {
  Gradients gradients(DType::kFloat32);
  gradients.add({{3e30, 4e30}}, 0, 0);
  const NormPart part = gradients.norm_of(NormKind::kTwo, 2);
  EXPECT_NEAR(std::sqrt(part.value), 5e30, 1e24);
  EXPECT_EQ(part.first_non_finite, kAllFinite);
}

TEST(NormSmall, ReportsTheSmallestPositionThatIsNotFinite) {
  const double bad[] = {std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity(), std::nan("")};
  for (const DType dtype : kFloatingTypes)
    for (const double value : bad)
      for (const NormKind kind : kKinds) {
        Gradients gradients(dtype);
        auto first = sources(dtype, 2, 2000);
        auto second = sources(dtype, 2, 2000);
        first[1][1500] = value;
        first[0][1501] = value;
        second[0][3] = value;
        gradients.add(second, 70'000, 1);
        gradients.add(first, 10'000, 2);
        const NormPart part = gradients.norm_of(kind, 3);
        EXPECT_EQ(part.first_non_finite, 11'500);
        EXPECT_FALSE(std::isfinite(part.value)) << static_cast<int>(kind);
      }
}

// Each source is finite; what the update would read is not.
TEST(NormSmall, ReportsASumOverSourcesThatOverflows) {
  Gradients gradients(DType::kFloat32);
  gradients.add({{1, 2, 3e38, 4}, {1, 2, 3e38, 4}}, 5, 0);
  EXPECT_EQ(gradients.norm_of(NormKind::kTwo, 2).first_non_finite, 7);
}

TEST(NormLarge, FindsANonFiniteElementInAnyChunk) {
  for (const std::size_t position : {std::size_t{0}, std::size_t{8191},
                                     std::size_t{8192}, std::size_t{99'999}}) {
    auto values = sources(DType::kBFloat16, 1, 100'000);
    values[0][position] = std::nan("");
    Gradients gradients(DType::kBFloat16);
    gradients.add(values, 0, 0);
    EXPECT_EQ(gradients.norm_of(NormKind::kTwo, 2).first_non_finite,
              static_cast<std::int64_t>(position));
  }
}

}  // namespace
}  // namespace ddp::test
