/// \file
/// The operations once more, plainly, in double precision on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "examples/gpt/ops/ops.h"

namespace bench {

using Values = std::vector<double>;
using gpt::AttentionShape;

/// out[m, n] = op(a) * op(b), row-major; op(a) is [m, k].
Values product(const Values& a, const Values& b, std::int64_t m, std::int64_t n,
               std::int64_t k, bool transpose_a, bool transpose_b);
/// Sum over rows of [rows, columns].
Values column_sums(const Values& matrix, std::int64_t columns);

double gelu(double x);
double gelu_derivative(double x);

struct Layernorm {
  Values out, mean, rstd;
};
Layernorm layernorm(const Values& in, const Values& weight, const Values& bias,
                    std::int64_t width);
struct LayernormGradients {
  Values in, weight, bias;
};
LayernormGradients layernorm_gradients(const Values& dout, const Values& in,
                                       const Values& weight,
                                       std::int64_t width);

struct AttentionResult {
  Values out;
  /// Gradient of qkv for the given dout.
  Values dqkv;
};
AttentionResult attention(const Values& qkv, const Values& dout,
                          const AttentionShape& shape);

struct LossResult {
  Values losses, gradient;
};
/// Gradient columns past `vocabulary` are left 0.
LossResult cross_entropy(const Values& logits,
                         const std::vector<double>& targets,
                         std::int64_t vocabulary, std::int64_t padded,
                         double scale);

}  // namespace bench
