// Causal attention of one head, in blocks of query rows. The scores of a block
// are recomputed in backward from the saved logarithms of their sums, as in
// FlashAttention (arXiv:2205.14135), so memory grows with the sequence only.
#include "examples/gpt/ops/cpu/isa.h"
#include "examples/gpt/ops/cpu/vector.h"

namespace gpt::GPT_ISA {
namespace {

/// Rows of queries in a block. More wastes work above the diagonal, less
/// loads keys and values more often.
constexpr int64_t kBlock = 32;
/// Rows of a register tile: 4 x 2 registers are enough independent sums to
/// keep two multiply-add units busy.
constexpr int kTileRows = 4;

GPT_INLINE int64_t round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

/// Sizes padded so that tiles need no edges; padding is zero.
struct Sizes {
  int64_t rows;     // sequence, a multiple of kBlock
  int64_t columns;  // head_size, a multiple of kLanes
};
GPT_INLINE Sizes sizes(int64_t sequence, int64_t head_size) {
  return {round_up(sequence, kBlock), round_up(head_size, kLanes)};
}

/// c[4 x registers] (+)= sum over k of a(row, k) * b(k, column).
template <int registers>
GPT_INLINE void tile(float* c, int64_t c_row, const float* a, int64_t a_row,
                     int64_t a_k, const float* b, int64_t b_k, int64_t depth,
                     bool accumulate) {
  Vec s[kTileRows][registers] = {};
  const float* a0 = a;
  const float* a1 = a + a_row;
  const float* a2 = a + 2 * a_row;
  const float* a3 = a + 3 * a_row;
  for (int64_t k = 0; k < depth; ++k) {
    for (int j = 0; j < registers; ++j) {
      const Vec column = load(b + j * kLanes);
      s[0][j] += splat(*a0) * column;
      s[1][j] += splat(*a1) * column;
      s[2][j] += splat(*a2) * column;
      s[3][j] += splat(*a3) * column;
    }
    a0 += a_k;
    a1 += a_k;
    a2 += a_k;
    a3 += a_k;
    b += b_k;
  }
  for (int i = 0; i < kTileRows; ++i)
    for (int j = 0; j < registers; ++j) {
      float* p = c + i * c_row + j * kLanes;
      store(p, accumulate ? load(p) + s[i][j] : s[i][j]);
    }
}

/// c[rows, columns] (+)= a * b, where a(i, k) lies at a + i a_row + k a_k and
/// rows of b and c are contiguous. REQUIRES: rows % 4 == 0, columns % kLanes
/// == 0.
static void product(float* c, int64_t c_row, const float* a, int64_t a_row,
                    int64_t a_k, const float* b, int64_t b_k, int64_t rows,
                    int64_t columns, int64_t depth, bool accumulate) {
  int64_t j = 0;
  for (; j + 2 * kLanes <= columns; j += 2 * kLanes)
    for (int64_t i = 0; i < rows; i += kTileRows)
      tile<2>(c + i * c_row + j, c_row, a + i * a_row, a_row, a_k, b + j, b_k,
              depth, accumulate);
  for (; j < columns; j += kLanes)
    for (int64_t i = 0; i < rows; i += kTileRows)
      tile<1>(c + i * c_row + j, c_row, a + i * a_row, a_row, a_k, b + j, b_k,
              depth, accumulate);
}

/// Copies [sequence, head_size] rows, scaled, into a padded block.
static void pack(float* to, const float* from, int64_t stride, int64_t sequence,
                 int64_t head_size, Sizes size, float scale) {
  for (int64_t row = 0; row < sequence; ++row) {
    float* p = to + row * size.columns;
    for_chunks(head_size, [&](int64_t i, auto n) {
      store(p + i, load(from + row * stride + i, n) * scale);
    });
  }
  for (int64_t i = sequence * size.columns; i < size.rows * size.columns; ++i)
    to[i] = 0;
}

/// The same, transposed: to[column][row].
static void pack_transposed(float* to, const float* from, int64_t stride,
                            int64_t sequence, int64_t head_size, Sizes size) {
  if (sequence < size.rows || head_size < size.columns)
    for (int64_t i = 0; i < size.rows * size.columns; ++i) to[i] = 0;
  for (int64_t row = 0; row < sequence; ++row)
    for (int64_t column = 0; column < head_size; ++column)
      to[column * size.rows + row] = from[row * stride + column];
}

static void unpack(float* to, const float* from, int64_t stride,
                   int64_t sequence, int64_t head_size, Sizes size,
                   float scale) {
  for (int64_t row = 0; row < sequence; ++row)
    for_chunks(head_size, [&](int64_t i, auto n) {
      store(to + row * stride + i, load(from + row * size.columns + i) * scale,
            n);
    });
}

/// The first `count` lanes, 0 for the rest.
GPT_INLINE Vec keep_first(Vec v, int64_t count) {
  return lane_numbers() < static_cast<std::int32_t>(count) ? v : Vec{};
}

/// scores[j] = softmax over the first `visible` of them, 0 for the rest of
/// `columns`; returns the logarithm of the sum.
GPT_INLINE float softmax_row(float* scores, int64_t visible, int64_t columns) {
  float largest = scores[0];
  Vec lanes = splat(largest);
  int64_t i = 0;
  for (; i + kLanes <= visible; i += kLanes)
    lanes = max(lanes, load(scores + i));
  for (int lane = 0; lane < kLanes; ++lane)
    if (lanes[lane] > largest) largest = lanes[lane];
  for (; i < visible; ++i)
    if (scores[i] > largest) largest = scores[i];
  Vec total = {};
  for (i = 0; i < columns; i += kLanes) {
    Vec e = exp(load(scores + i) - largest);
    if (i + kLanes > visible) e = keep_first(e, visible - i);
    store(scores + i, e);
    total += e;
  }
  const float partition = sum(total);
  const float factor = 1.0f / partition;
  for (i = 0; i < columns; i += kLanes)
    store(scores + i, load(scores + i) * factor);
  return __builtin_logf(partition) + largest;
}

/// scores[j] = e^(scores[j] - log_sum) where visible, else 0.
GPT_INLINE void softmax_again(float* scores, int64_t visible, int64_t columns,
                              float log_sum) {
  for (int64_t i = 0; i < columns; i += kLanes) {
    Vec e = exp(load(scores + i) - log_sum);
    if (i + kLanes > visible) e = keep_first(e, visible - i);
    store(scores + i, e);
  }
}

GPT_INLINE float attention_scale(int64_t head_size) {
  return 1.0f / __builtin_sqrtf(static_cast<float>(head_size));
}

}  // namespace

int64_t attention_scratch(int64_t sequence, int64_t head_size, bool backward) {
  const Sizes size = sizes(sequence, head_size);
  const int64_t matrix = size.rows * size.columns;
  const int64_t block = kBlock * size.rows;
  return backward ? 9 * matrix + 2 * block : 4 * matrix + block;
}

// Scratch: | q | k^T | v | out | scores of a block |
void attention(const AttentionHead& head, float* scratch) {
  const int64_t t = head.sequence;
  const int64_t h = head.head_size;
  const Sizes size = sizes(t, h);
  const int64_t matrix = size.rows * size.columns;
  float* q = scratch;
  float* kt = q + matrix;
  float* v = kt + matrix;
  float* out = v + matrix;
  float* scores = out + matrix;
  pack(q, head.q, head.qkv_stride, t, h, size, attention_scale(h));
  pack_transposed(kt, head.k, head.qkv_stride, t, h, size);
  pack(v, head.v, head.qkv_stride, t, h, size, 1);

  for (int64_t begin = 0; begin < size.rows; begin += kBlock) {
    const int64_t columns = begin + kBlock;
    product(scores, size.rows, q + begin * size.columns, size.columns, 1, kt,
            size.rows, kBlock, columns, size.columns, false);
    for (int64_t row = 0; row < kBlock; ++row) {
      const float log_sum =
          softmax_row(scores + row * size.rows, begin + row + 1, columns);
      if (begin + row < t) head.log_sums[begin + row] = log_sum;
    }
    product(out + begin * size.columns, size.columns, scores, size.rows, 1, v,
            size.columns, kBlock, size.columns, columns, false);
  }
  unpack(head.out, out, head.out_stride, t, h, size, 1);
}

// Scratch: | q | k | k^T | v^T | dout | dq | dk | dv | spare || scores | ds |
void attention_backward(const AttentionHead& head, float* scratch) {
  const int64_t t = head.sequence;
  const int64_t h = head.head_size;
  const Sizes size = sizes(t, h);
  const int64_t matrix = size.rows * size.columns;
  float* q = scratch;
  float* k = q + matrix;
  float* kt = k + matrix;
  float* vt = kt + matrix;
  float* dout = vt + matrix;
  float* dq = dout + matrix;
  float* dk = dq + matrix;
  float* dv = dk + matrix;
  float* deltas = dv + matrix;
  float* scores = deltas + matrix;
  float* ds = scores + kBlock * size.rows;
  const float scale = attention_scale(h);
  // With q scaled, dk = ds^T q needs no scale and dq one at the end.
  pack(q, head.q, head.qkv_stride, t, h, size, scale);
  pack(k, head.k, head.qkv_stride, t, h, size, 1);
  pack_transposed(kt, head.k, head.qkv_stride, t, h, size);
  pack_transposed(vt, head.v, head.qkv_stride, t, h, size);
  pack(dout, head.dout, head.out_stride, t, h, size, 1);
  for (int64_t i = 0; i < matrix; ++i) dk[i] = dv[i] = 0;
  for (int64_t row = 0; row < size.rows; ++row) {
    Vec delta = {};
    for_chunks(row < t ? h : 0, [&](int64_t i, auto n) {
      delta += load(dout + row * size.columns + i, n) *
               load(head.out + row * head.out_stride + i, n);
    });
    deltas[row] = sum(delta);
  }

  for (int64_t begin = 0; begin < size.rows; begin += kBlock) {
    const int64_t columns = begin + kBlock;
    const float* q_block = q + begin * size.columns;
    const float* dout_block = dout + begin * size.columns;
    product(scores, size.rows, q_block, size.columns, 1, kt, size.rows, kBlock,
            columns, size.columns, false);
    product(ds, size.rows, dout_block, size.columns, 1, vt, size.rows, kBlock,
            columns, size.columns, false);
    for (int64_t row = 0; row < kBlock; ++row) {
      const int64_t at = begin + row;
      float* p = scores + row * size.rows;
      // Rows past the sequence see nothing, so they add nothing.
      softmax_again(p, at < t ? at + 1 : 0, columns,
                    at < t ? head.log_sums[at] : 0);
      float* d = ds + row * size.rows;
      for (int64_t i = 0; i < columns; i += kLanes)
        store(d + i, load(p + i) * (load(d + i) - deltas[at]));
    }
    product(dv, size.columns, scores, 1, size.rows, dout_block, size.columns,
            columns, size.columns, kBlock, true);
    product(dk, size.columns, ds, 1, size.rows, q_block, size.columns, columns,
            size.columns, kBlock, true);
    product(dq + begin * size.columns, size.columns, ds, size.rows, 1, k,
            size.columns, kBlock, size.columns, columns, false);
  }
  unpack(head.dq, dq, head.qkv_stride, t, h, size, scale);
  unpack(head.dk, dk, head.qkv_stride, t, h, size, 1);
  unpack(head.dv, dv, head.qkv_stride, t, h, size, 1);
}

const Kernels& table() {
#define GPT_STRING_OF(name) #name
#define GPT_STRING(name) GPT_STRING_OF(name)
  static constexpr Kernels kTable = {
      .name = GPT_STRING(GPT_ISA),
      .layernorm = layernorm,
      .layernorm_backward = layernorm_backward,
      .repeat_row = repeat_row,
      .gelu = gelu,
      .gelu_backward = gelu_backward,
      .add = add,
      .column_sums = column_sums,
      .cross_entropy = cross_entropy,
      .attention_scratch = attention_scratch,
      .attention = attention,
      .attention_backward = attention_backward,
  };
#undef GPT_STRING
#undef GPT_STRING_OF
  return kTable;
}

}  // namespace gpt::GPT_ISA
