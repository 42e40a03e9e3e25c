#include "tests/unit/gpt/reference.h"

#include <cmath>
#include <numbers>

namespace gpt::reference {

namespace {

/// Offset of element 0 of q (0), k (1) or v (2).
std::int64_t offset(const Heads& s, std::int64_t batch, std::int64_t t,
                    std::int64_t which, std::int64_t head) {
  return (((batch * s.sequence + t) * 3 + which) * s.heads + head) *
         s.head_size;
}

std::int64_t out_offset(const Heads& s, std::int64_t batch, std::int64_t t,
                        std::int64_t head) {
  return ((batch * s.sequence + t) * s.heads + head) * s.head_size;
}

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// Softmax of query t's scores over keys 0..t.
Values weights_of(const Values& qkv, const Heads& s, std::int64_t batch,
                  std::int64_t t, std::int64_t head) {
  const double scale = 1 / std::sqrt(static_cast<double>(s.head_size));
  Values p;
  double total = 0;
  for (std::int64_t j = 0; j <= t; ++j) {
    p.push_back(
        std::exp(scale * dot(&qkv[offset(s, batch, t, 0, head)],
                             &qkv[offset(s, batch, j, 1, head)], s.head_size)));
    total += p.back();
  }
  for (double& each : p) each /= total;
  return p;
}

}  // namespace

NormResult layernorm(const Values& in, const Values& weight, const Values& bias,
                     std::int64_t rows) {
  const auto width = static_cast<std::int64_t>(weight.size());
  NormResult result{Values(in.size()), Values(rows), Values(rows)};
  for (std::int64_t row = 0; row < rows; ++row) {
    const double* x = &in[row * width];
    double mean = 0;
    double variance = 0;
    for (std::int64_t i = 0; i < width; ++i) mean += x[i] / width;
    for (std::int64_t i = 0; i < width; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / width;
    const double rstd = 1 / std::sqrt(variance + 1e-5);
    for (std::int64_t i = 0; i < width; ++i)
      result.out[row * width + i] = (x[i] - mean) * rstd * weight[i] + bias[i];
    result.mean[row] = mean;
    result.rstd[row] = rstd;
  }
  return result;
}

NormGradients layernorm_backward(const Values& dout, const Values& in,
                                 const Values& weight, std::int64_t rows) {
  const auto width = static_cast<std::int64_t>(weight.size());
  const NormResult forward = layernorm(in, weight, Values(width), rows);
  NormGradients d{Values(in.size()), Values(width), Values(width)};
  for (std::int64_t row = 0; row < rows; ++row) {
    const double* g = &dout[row * width];
    double sum = 0;
    double sum_normal = 0;
    Values normal(width);
    for (std::int64_t i = 0; i < width; ++i) {
      normal[i] = (in[row * width + i] - forward.mean[row]) * forward.rstd[row];
      sum += g[i] * weight[i];
      sum_normal += g[i] * weight[i] * normal[i];
      d.weight[i] += g[i] * normal[i];
      d.bias[i] += g[i];
    }
    for (std::int64_t i = 0; i < width; ++i)
      d.in[row * width + i] =
          forward.rstd[row] *
          (g[i] * weight[i] - sum / width - normal[i] * sum_normal / width);
  }
  return d;
}

Values linear(const Values& in, const Values& weight, const Values& bias,
              std::int64_t rows, std::int64_t columns) {
  const auto depth = static_cast<std::int64_t>(in.size()) / rows;
  Values out(rows * columns);
  for (std::int64_t row = 0; row < rows; ++row) {
    double* y = &out[row * columns];
    for (std::int64_t j = 0; j < columns; ++j)
      y[j] = bias.empty() ? 0 : bias[j];
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t j = 0; j < columns; ++j)
        y[j] += in[row * depth + k] * weight[k * columns + j];
  }
  return out;
}

Values times_transposed(const Values& a, const Values& b, std::int64_t m,
                        std::int64_t n) {
  const auto depth = static_cast<std::int64_t>(a.size()) / m;
  Values out(m * n);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      out[i * n + j] = dot(&a[i * depth], &b[j * depth], depth);
  return out;
}

Values transposed_times(const Values& a, const Values& b, std::int64_t k) {
  const auto m = static_cast<std::int64_t>(a.size()) / k;
  const auto n = static_cast<std::int64_t>(b.size()) / k;
  Values out(m * n);
  for (std::int64_t l = 0; l < k; ++l)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        out[i * n + j] += a[l * m + i] * b[l * n + j];
  return out;
}

Values column_sums(const Values& x, std::int64_t rows) {
  Values sums(x.size() / rows);
  for (std::size_t i = 0; i < x.size(); ++i) sums[i % sums.size()] += x[i];
  return sums;
}

Values gelu(const Values& x) {
  Values y;
  for (double v : x)
    y.push_back(0.5 * v *
                (1 + std::tanh(std::sqrt(2 / std::numbers::pi) *
                               (v + 0.044715 * v * v * v))));
  return y;
}

Values gelu_backward(const Values& dout, const Values& x) {
  Values d;
  const double c = std::sqrt(2 / std::numbers::pi);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    const double t = std::tanh(c * (v + 0.044715 * v * v * v));
    const double slope = c * (1 + 3 * 0.044715 * v * v);
    d.push_back(dout[i] * (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * slope));
  }
  return d;
}

Values attention(const Values& qkv, const Heads& s) {
  Values out(qkv.size() / 3);
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t t = 0; t < s.sequence; ++t) {
        const Values p = weights_of(qkv, s, b, t, h);
        for (std::int64_t j = 0; j <= t; ++j)
          for (std::int64_t i = 0; i < s.head_size; ++i)
            out[out_offset(s, b, t, h) + i] +=
                p[j] * qkv[offset(s, b, j, 2, h) + i];
      }
  return out;
}

Values attention_backward(const Values& dout, const Values& qkv,
                          const Heads& s) {
  const double scale = 1 / std::sqrt(static_cast<double>(s.head_size));
  Values d(qkv.size());
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t t = 0; t < s.sequence; ++t) {
        const Values p = weights_of(qkv, s, b, t, h);
        const double* g = &dout[out_offset(s, b, t, h)];
        Values dp;
        double mean = 0;
        for (std::int64_t j = 0; j <= t; ++j) {
          dp.push_back(dot(g, &qkv[offset(s, b, j, 2, h)], s.head_size));
          mean += p[j] * dp[j];
        }
        for (std::int64_t j = 0; j <= t; ++j) {
          const double ds = scale * p[j] * (dp[j] - mean);
          for (std::int64_t i = 0; i < s.head_size; ++i) {
            d[offset(s, b, t, 0, h) + i] += ds * qkv[offset(s, b, j, 1, h) + i];
            d[offset(s, b, j, 1, h) + i] += ds * qkv[offset(s, b, t, 0, h) + i];
            d[offset(s, b, j, 2, h) + i] += p[j] * g[i];
          }
        }
      }
  return d;
}

LossResult cross_entropy(const Values& logits,
                         const std::vector<std::int32_t>& targets,
                         std::int64_t vocabulary) {
  LossResult result{Values(targets.size()), Values(logits.size())};
  for (std::size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] < 0) continue;
    const double* x = &logits[row * vocabulary];
    double largest = x[0];
    double total = 0;
    for (std::int64_t i = 0; i < vocabulary; ++i)
      largest = std::max(largest, x[i]);
    for (std::int64_t i = 0; i < vocabulary; ++i)
      total += std::exp(x[i] - largest);
    result.losses[row] = std::log(total) + largest - x[targets[row]];
    for (std::int64_t i = 0; i < vocabulary; ++i)
      result.gradient[row * vocabulary + i] =
          std::exp(x[i] - largest) / total - (i == targets[row] ? 1 : 0);
  }
  return result;
}

}  // namespace gpt::reference
