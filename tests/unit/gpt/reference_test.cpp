// The reference's own gradients against central differences.
#include "tests/unit/gpt/reference.h"

#include <gtest/gtest.h>

#include <functional>

#include "examples/gpt/model/random.h"

namespace gpt::reference {
namespace {

Values random_values(std::int64_t count, std::uint64_t stream) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(normal(7, stream, i));
  return values;
}

/// d/dx of sum(dout * f(x)), by central differences; their error is of the
/// order of h^2 = 1e-10.
Values differences(const std::function<Values(const Values&)>& f,
                   const Values& dout, Values x) {
  constexpr double kStep = 1e-5;
  const auto value = [&] {
    const Values y = f(x);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += dout[i] * y[i];
    return sum;
  };
  Values d;
  for (double& each : x) {
    const double before = each;
    each = before + kStep;
    const double above = value();
    each = before - kStep;
    d.push_back((above - value()) / (2 * kStep));
    each = before;
  }
  return d;
}

void expect_equal(const Values& actual, const Values& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-7) << "element " << i;
}

TEST(Reference, LayerNormBackwardIsTheDerivativeOfForward) {
  const std::int64_t rows = 3;
  const Values in = random_values(rows * 5, 1);
  const Values weight = random_values(5, 2);
  const Values bias = random_values(5, 3);
  const Values dout = random_values(rows * 5, 4);
  const NormGradients d = layernorm_backward(dout, in, weight, rows);
  expect_equal(d.in, differences(
                         [&](const Values& x) {
                           return layernorm(x, weight, bias, rows).out;
                         },
                         dout, in));
  expect_equal(d.weight, differences(
                             [&](const Values& w) {
                               return layernorm(in, w, bias, rows).out;
                             },
                             dout, weight));
  expect_equal(d.bias, differences(
                           [&](const Values& b) {
                             return layernorm(in, weight, b, rows).out;
                           },
                           dout, bias));
}

TEST(Reference, LinearBackwardIsTheDerivativeOfForward) {
  const Values in = random_values(3 * 4, 1);
  const Values weight = random_values(4 * 5, 2);
  const Values bias = random_values(5, 3);
  const Values dout = random_values(3 * 5, 4);
  expect_equal(
      times_transposed(dout, weight, 3, 4),
      differences(
          [&](const Values& x) { return linear(x, weight, bias, 3, 5); }, dout,
          in));
  expect_equal(
      transposed_times(in, dout, 3),
      differences([&](const Values& w) { return linear(in, w, bias, 3, 5); },
                  dout, weight));
  expect_equal(
      column_sums(dout, 3),
      differences([&](const Values& b) { return linear(in, weight, b, 3, 5); },
                  dout, bias));
}

TEST(Reference, GeluBackwardIsTheDerivativeOfForward) {
  const Values x = random_values(40, 1);
  const Values dout = random_values(40, 2);
  expect_equal(gelu_backward(dout, x), differences(gelu, dout, x));
}

TEST(Reference, AttentionBackwardIsTheDerivativeOfForward) {
  const Heads shape{2, 5, 2, 3};
  const Values qkv = random_values(2 * 5 * 3 * 2 * 3, 1);
  const Values dout = random_values(2 * 5 * 2 * 3, 2);
  expect_equal(attention_backward(dout, qkv, shape),
               differences([&](const Values& x) { return attention(x, shape); },
                           dout, qkv));
}

TEST(Reference, CrossEntropyGradientIsTheDerivativeOfTheLoss) {
  const Values logits = random_values(3 * 6, 1);
  const std::vector<std::int32_t> targets{4, -1, 0};
  expect_equal(
      cross_entropy(logits, targets, 6).gradient,
      differences(
          [&](const Values& x) { return cross_entropy(x, targets, 6).losses; },
          Values(3, 1.0), logits));
}

}  // namespace
}  // namespace gpt::reference
