#include "benchmarks/gpt_ops/reference.h"

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

const double kGeluScale = std::sqrt(2.0 / std::acos(-1.0));

}  // namespace

Values product(const Values& a, const Values& b, std::int64_t m, std::int64_t n,
               std::int64_t k, bool transpose_a, bool transpose_b) {
  Values out(at(m * n));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += a[at(transpose_a ? l * m + i : i * k + l)] *
               b[at(transpose_b ? j * k + l : l * n + j)];
      out[at(i * n + j)] = sum;
    }
  return out;
}

Values column_sums(const Values& matrix, std::int64_t columns) {
  Values sums(at(columns));
  for (std::size_t i = 0; i < matrix.size(); ++i)
    sums[i % at(columns)] += matrix[i];
  return sums;
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(kGeluScale * (x + 0.044715 * x * x * x)));
}

double gelu_derivative(double x) {
  const double t = std::tanh(kGeluScale * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) +
         0.5 * x * (1 - t * t) * kGeluScale * (1 + 3 * 0.044715 * x * x);
}

Layernorm layernorm(const Values& in, const Values& weight, const Values& bias,
                    std::int64_t width) {
  const std::size_t rows = in.size() / at(width);
  Layernorm result{Values(in.size()), Values(rows), Values(rows)};
  for (std::size_t row = 0; row < rows; ++row) {
    const double* const x = in.data() + row * at(width);
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < at(width); ++c) mean += x[c];
    mean /= static_cast<double>(width);
    for (std::size_t c = 0; c < at(width); ++c)
      variance += (x[c] - mean) * (x[c] - mean);
    variance /= static_cast<double>(width);
    const double rstd = 1 / std::sqrt(variance + 1e-5);
    for (std::size_t c = 0; c < at(width); ++c)
      result.out[row * at(width) + c] =
          (x[c] - mean) * rstd * weight[c] + bias[c];
    result.mean[row] = mean;
    result.rstd[row] = rstd;
  }
  return result;
}

LayernormGradients layernorm_gradients(const Values& dout, const Values& in,
                                       const Values& weight,
                                       std::int64_t width) {
  const std::size_t w = at(width), rows = in.size() / w;
  const Layernorm forward = layernorm(in, Values(w, 1.0), Values(w), width);
  LayernormGradients result{Values(in.size()), Values(w), Values(w)};
  for (std::size_t row = 0; row < rows; ++row) {
    const double* const dy = dout.data() + row * w;
    const double* const normal = forward.out.data() + row * w;
    double mean_g = 0, mean_gx = 0;
    for (std::size_t c = 0; c < w; ++c) {
      const double g = dy[c] * weight[c];
      mean_g += g / static_cast<double>(w);
      mean_gx += g * normal[c] / static_cast<double>(w);
      result.weight[c] += dy[c] * normal[c];
      result.bias[c] += dy[c];
    }
    for (std::size_t c = 0; c < w; ++c)
      result.in[row * w + c] = forward.rstd[row] * (dy[c] * weight[c] - mean_g -
                                                    normal[c] * mean_gx);
  }
  return result;
}

AttentionResult attention(const Values& qkv, const Values& dout,
                          const AttentionShape& s) {
  const std::int64_t T = s.sequence, H = s.heads, D = s.head_size;
  AttentionResult result{Values(dout.size()), Values(qkv.size())};
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < H; ++h) {
      const auto in = [&](std::int64_t t, int part) {
        return at((((b * T + t) * 3 + part) * H + h) * D);
      };
      const auto out = [&](std::int64_t t) {
        return at(((b * T + t) * H + h) * D);
      };
      for (std::int64_t t = 0; t < T; ++t) {
        Values p(at(t + 1)), dp(at(t + 1));
        double largest = -INFINITY, sum = 0, delta = 0;
        for (std::int64_t k = 0; k <= t; ++k) {
          for (std::size_t d = 0; d < at(D); ++d)
            p[at(k)] += scale * qkv[in(t, 0) + d] * qkv[in(k, 1) + d];
          largest = std::max(largest, p[at(k)]);
        }
        for (double& x : p) sum += x = std::exp(x - largest);
        for (std::int64_t k = 0; k <= t; ++k) {
          p[at(k)] /= sum;
          for (std::size_t d = 0; d < at(D); ++d) {
            const double dy = dout[out(t) + d];
            result.out[out(t) + d] += p[at(k)] * qkv[in(k, 2) + d];
            result.dqkv[in(k, 2) + d] += p[at(k)] * dy;
            dp[at(k)] += dy * qkv[in(k, 2) + d];
          }
          delta += p[at(k)] * dp[at(k)];
        }
        for (std::int64_t k = 0; k <= t; ++k) {
          const double ds = scale * p[at(k)] * (dp[at(k)] - delta);
          for (std::size_t d = 0; d < at(D); ++d) {
            result.dqkv[in(t, 0) + d] += ds * qkv[in(k, 1) + d];
            result.dqkv[in(k, 1) + d] += ds * qkv[in(t, 0) + d];
          }
        }
      }
    }
  return result;
}

LossResult cross_entropy(const Values& logits,
                         const std::vector<double>& targets,
                         std::int64_t vocabulary, std::int64_t padded,
                         double scale) {
  LossResult result{Values(targets.size()), Values(logits.size())};
  for (std::size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] < 0) continue;
    const double* const x = logits.data() + row * at(padded);
    const double largest = *std::max_element(x, x + vocabulary);
    double sum = 0;
    for (std::int64_t c = 0; c < vocabulary; ++c)
      sum += std::exp(x[c] - largest);
    const auto target = static_cast<std::int64_t>(targets[row]);
    result.losses[row] = std::log(sum) + largest - x[target];
    for (std::int64_t c = 0; c < vocabulary; ++c)
      result.gradient[row * at(padded) + at(c)] =
          scale * (std::exp(x[c] - largest) / sum - (c == target));
  }
  return result;
}

}  // namespace bench
