// Kernels that walk rows: layernorm, bias, GELU, cross entropy.
#include "examples/gpt/ops/cpu/isa.h"
#include "examples/gpt/ops/cpu/vector.h"

namespace gpt::GPT_ISA {

using std::int64_t;

namespace {

constexpr float kEpsilon = 1e-5f;

GPT_INLINE float inverse_root(float x) { return 1.0f / __builtin_sqrtf(x); }

/// 1 / (1 + e^-2u) with u the argument of tanh in GELU's approximation, since
/// (1 + tanh u) / 2 is that sigmoid: one exponential and one division.
GPT_INLINE Vec gelu_gate(Vec x) {
  const Vec minus_two_u =
      x * (-1.5957691216057308f - 0.07135481282617512f * (x * x));
  return 1.0f / (1.0f + exp(minus_two_u));
}

}  // namespace

void layernorm(float* residual, float* out, float* mean, float* rstd,
               const float* a, const float* b, const float* weight,
               const float* bias, int64_t rows, int64_t width) {
  const float scale = 1.0f / static_cast<float>(width);
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = a + row * width;
    Vec total = {};
    if (b != nullptr) {
      float* sum_row = residual + row * width;
      for_chunks(width, [&](int64_t i, auto n) {
        const Vec x = load(in + i, n) + load(b + row * width + i, n);
        store(sum_row + i, x, n);
        total += x;
      });
      in = sum_row;
    } else {
      for_chunks(width, [&](int64_t i, auto n) { total += load(in + i, n); });
    }
    const float m = sum(total) * scale;
    float squares = 0;
    Vec squared = {};
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
      const Vec d = load(in + i) - m;
      squared += d * d;
    }
    for (; i < width; ++i) squares += (in[i] - m) * (in[i] - m);
    squares += sum(squared);
    const float r = inverse_root(squares * scale + kEpsilon);
    float* row_out = out + row * width;
    for_chunks(width, [&](int64_t c, auto n) {
      const Vec normal = (load(in + c, n) - m) * r;
      store(row_out + c, normal * load(weight + c, n) + load(bias + c, n), n);
    });
    mean[row] = m;
    rstd[row] = r;
  }
}

void layernorm_backward(float* din, float* dweight, float* dbias,
                        const float* dout, const float* in, const float* weight,
                        const float* mean, const float* rstd, int64_t rows,
                        int64_t width) {
  for_chunks(width, [&](int64_t i, auto n) {
    store(dweight + i, Vec{}, n);
    store(dbias + i, Vec{}, n);
  });
  const float scale = 1.0f / static_cast<float>(width);
  for (int64_t row = 0; row < rows; ++row) {
    const float* g = dout + row * width;
    const float* x = in + row * width;
    float* dx = din + row * width;
    const float m = mean[row];
    const float r = rstd[row];
    Vec sum_g = {};
    Vec sum_gx = {};
    for_chunks(width, [&](int64_t i, auto n) {
      const Vec d = load(g + i, n);
      const Vec normal = (load(x + i, n) - m) * r;
      const Vec dn = d * load(weight + i, n);
      sum_g += dn;
      sum_gx += dn * normal;
      store(dweight + i, load(dweight + i, n) + d * normal, n);
      store(dbias + i, load(dbias + i, n) + d, n);
    });
    const float mean_g = sum(sum_g) * scale;
    const float mean_gx = sum(sum_gx) * scale;
    for_chunks(width, [&](int64_t i, auto n) {
      const Vec normal = (load(x + i, n) - m) * r;
      const Vec dn = load(g + i, n) * load(weight + i, n);
      const Vec d = (dn - mean_g - normal * mean_gx) * r;
      store(dx + i, load(dx + i, n) + d, n);
    });
  }
}

void repeat_row(float* x, const float* row, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i)
    for_chunks(width, [&](int64_t c, auto n) {
      store(x + i * width + c, load(row + c, n), n);
    });
}

void gelu(float* out, const float* in, int64_t count) {
  for_chunks(count, [&](int64_t i, auto n) {
    const Vec x = load(in + i, n);
    store(out + i, x * gelu_gate(x), n);
  });
}

void gelu_backward(float* dout, const float* pre, int64_t count) {
  // d/dx x s(2u) = s + x s (1 - s) d(2u)/dx.
  for_chunks(count, [&](int64_t i, auto n) {
    const Vec x = load(pre + i, n);
    const Vec gate = gelu_gate(x);
    const Vec slope =
        1.5957691216057308f + (3 * 0.07135481282617512f) * (x * x);
    const Vec d = gate + x * gate * (1.0f - gate) * slope;
    store(dout + i, load(dout + i, n) * d, n);
  });
}

void add(float* out, const float* a, const float* b, int64_t count) {
  for_chunks(count, [&](int64_t i, auto n) {
    store(out + i, load(a + i, n) + load(b + i, n), n);
  });
}

void column_sums(float* sums, const float* x, int64_t rows, int64_t width) {
  // Strips of four registers, so that sums stay in them.
  constexpr int64_t kStrip = 4 * kLanes;
  int64_t column = 0;
  for (; column + kStrip <= width; column += kStrip) {
    Vec s[4] = {};
    for (int64_t row = 0; row < rows; ++row)
      for (int j = 0; j < 4; ++j)
        s[j] += load(x + row * width + column + j * kLanes);
    for (int j = 0; j < 4; ++j) store(sums + column + j * kLanes, s[j]);
  }
  for_chunks(width - column, [&](int64_t i, auto n) {
    Vec s = {};
    for (int64_t row = 0; row < rows; ++row)
      s += load(x + row * width + column + i, n);
    store(sums + column + i, s, n);
  });
}

float cross_entropy(float* logits, int64_t target, int64_t vocabulary,
                    float scale, bool gradient) {
  if (target < 0) {
    if (gradient)
      for_chunks(vocabulary,
                 [&](int64_t i, auto n) { store(logits + i, Vec{}, n); });
    return 0;
  }
  Vec largest_lanes = splat(logits[0]);
  int64_t i = 0;
  for (; i + kLanes <= vocabulary; i += kLanes)
    largest_lanes = max(largest_lanes, load(logits + i));
  float largest = largest_lanes[0];
  for (int lane = 1; lane < kLanes; ++lane)
    if (largest_lanes[lane] > largest) largest = largest_lanes[lane];
  for (; i < vocabulary; ++i)
    if (logits[i] > largest) largest = logits[i];

  const float at_target = logits[target];
  Vec total = {};
  float tail = 0;
  const auto accumulate = [&](bool keep) __attribute__((always_inline)) {
    int64_t c = 0;
    for (; c + kLanes <= vocabulary; c += kLanes) {
      const Vec e = exp(load(logits + c) - largest);
      if (keep) store(logits + c, e);
      total += e;
    }
    for (; c < vocabulary; ++c) {
      const float e = exp(splat(logits[c] - largest))[0];
      if (keep) logits[c] = e;
      tail += e;
    }
  };
  if (gradient)
    accumulate(true);
  else
    accumulate(false);
  const float partition = sum(total) + tail;
  if (gradient) {
    const float factor = scale / partition;
    for_chunks(vocabulary, [&](int64_t c, auto n) {
      store(logits + c, load(logits + c, n) * factor, n);
    });
    logits[target] -= scale;
  }
  return __builtin_logf(partition) + largest - at_target;
}

}  // namespace gpt::GPT_ISA
