/// \file
/// GPT-2's layers once more, plainly and in double precision: what both twins
/// of the operations are judged against. gpt_reference_test compares each
/// backward here with finite differences of its forward.
#pragma once

#include <cstdint>
#include <vector>

namespace gpt::reference {

using Values = std::vector<double>;

struct NormResult {
  Values out;
  Values mean;
  Values rstd;
};
NormResult layernorm(const Values& in, const Values& weight, const Values& bias,
                     std::int64_t rows);

struct NormGradients {
  Values in;
  Values weight;
  Values bias;
};
NormGradients layernorm_backward(const Values& dout, const Values& in,
                                 const Values& weight, std::int64_t rows);

/// in[rows, k] * weight[k, columns] + bias; an empty bias adds nothing.
Values linear(const Values& in, const Values& weight, const Values& bias,
              std::int64_t rows, std::int64_t columns);
/// a[m, k] * b[n, k]^T.
Values times_transposed(const Values& a, const Values& b, std::int64_t m,
                        std::int64_t n);
/// a[k, m]^T * b[k, n].
Values transposed_times(const Values& a, const Values& b, std::int64_t k);
Values column_sums(const Values& x, std::int64_t rows);

Values gelu(const Values& x);
/// dout * gelu'(x).
Values gelu_backward(const Values& dout, const Values& x);

struct Heads {
  std::int64_t batch;
  std::int64_t sequence;
  std::int64_t heads;
  std::int64_t head_size;
};
Values attention(const Values& qkv, const Heads& shape);
Values attention_backward(const Values& dout, const Values& qkv,
                          const Heads& shape);

struct LossResult {
  Values losses;
  Values gradient;  ///< of the sum of losses
};
/// logits [rows, vocabulary]; targets below 0 are ignored.
LossResult cross_entropy(const Values& logits,
                         const std::vector<std::int32_t>& targets,
                         std::int64_t vocabulary);

}  // namespace gpt::reference
