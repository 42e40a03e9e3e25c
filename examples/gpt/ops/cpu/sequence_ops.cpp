// Operations of CpuOps that look along the sequence: embedding, attention.
#include <algorithm>
#include <cstring>

#include "examples/gpt/ops/cpu/cpu_ops.h"
#include "examples/gpt/ops/cpu/kernels.h"
#include "examples/gpt/ops/cpu/threads.h"

namespace gpt {

using std::int64_t;

namespace {

/// The pieces of qkv, out and saved that belong to head number `index`.
AttentionHead head_of(const AttentionShape& shape, int64_t index,
                      const float* qkv, float* log_sums) {
  const int64_t width = shape.heads * shape.head_size;
  const int64_t batch = index / shape.heads;
  const int64_t column = index % shape.heads * shape.head_size;
  const float* q = qkv + batch * shape.sequence * 3 * width + column;
  return {.sequence = shape.sequence,
          .head_size = shape.head_size,
          .qkv_stride = 3 * width,
          .out_stride = width,
          .q = q,
          .k = q + width,
          .v = q + 2 * width,
          .log_sums = log_sums + index * shape.sequence};
}

int64_t out_offset(const AttentionShape& shape, int64_t index) {
  return index / shape.heads * shape.sequence * shape.heads *
             shape.head_size +
         index % shape.heads * shape.head_size;
}

}  // namespace

void check_tokens(const std::int32_t* tokens, int64_t count,
                  std::int32_t least, int64_t vocabulary, const char* what) {
  for (int64_t i = 0; i < count; ++i)
    DDP_EXPECT(tokens[i] >= least && tokens[i] < vocabulary, InvalidArgument, what, " ", i, " is ",
               tokens[i], ", but the vocabulary has ", vocabulary,
               " entries; give data of the model's tokenizer");
}

void CpuOps::embedding_forward(TensorView out, TensorView tokens,
                               TensorView token_table,
                               TensorView position_table, int64_t rows,
                               int64_t sequence, int64_t width) {
  Staging stage(pool_);
  const auto* token = tokens.as<std::int32_t>();
  check_tokens(token, rows, 0, token_table.numel / width, "token");
  const float* words = stage.read(token_table, token_table.numel);
  const float* places = stage.read(position_table, sequence * width);
  float* y = stage.write(out, rows * width);
  for (int64_t row = 0; row < rows; ++row)
    kernels().add(y + row * width, words + token[row] * width,
                  places + row % sequence * width, width);
  stage.finish();
}

void CpuOps::embedding_backward(GradientTarget token_table,
                                GradientTarget position_table, TensorView dout,
                                TensorView tokens, int64_t rows,
                                int64_t sequence, int64_t width,
                                int64_t vocabulary) {
  Staging stage(pool_);
  const int64_t positions = position_table.tensor.numel / width;
  const auto* token = tokens.as<std::int32_t>();
  const float* g = stage.read(dout, rows * width);
  float* words = token_table.accumulate
                     ? stage.update(token_table.tensor, vocabulary * width)
                     : stage.write(token_table.tensor, vocabulary * width);
  float* places =
      position_table.accumulate
          ? stage.update(position_table.tensor, positions * width)
          : stage.write(position_table.tensor, positions * width);
  // Rows of one token may be anywhere, so threads share columns instead: each
  // column's sum is taken in row order, whatever the number of threads.
  constexpr int64_t kColumns = 64;
  parallel_for((width + kColumns - 1) / kColumns, [&](int64_t strip) {
    const int64_t at = strip * kColumns;
    const int64_t count = std::min(kColumns, width - at);
    const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
    for (int64_t i = 0; i < vocabulary && !token_table.accumulate; ++i)
      std::memset(words + i * width + at, 0, bytes);
    for (int64_t i = 0; i < positions && !position_table.accumulate; ++i)
      std::memset(places + i * width + at, 0, bytes);
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = g + row * width + at;
      float* word = words + token[row] * width + at;
      float* place = places + row % sequence * width + at;
      kernels().add(word, word, from, count);
      kernels().add(place, place, from, count);
    }
  });
  stage.finish();
}

std::size_t CpuOps::attention_saved_bytes(const AttentionShape& shape) const {
  return static_cast<std::size_t>(shape.batch * shape.heads * shape.sequence) *
         sizeof(float);
}

void CpuOps::attention_forward(TensorView out, TensorView saved,
                               TensorView qkv, const AttentionShape& shape) {
  Staging stage(pool_);
  const int64_t heads = shape.batch * shape.heads;
  const int64_t elements = heads * shape.sequence * shape.head_size;
  const float* x = stage.read(qkv, 3 * elements);
  float* y = stage.write(out, elements);
  const int64_t size =
      kernels().attention_scratch(shape.sequence, shape.head_size, false);
  const int64_t lanes = std::min<int64_t>(heads, cpu_threads());
  float* scratch = stage.scratch(lanes * size);
  // Lane l takes heads l, l + lanes, ...: each has scratch of its own.
  parallel_for(lanes, [&](int64_t lane) {
    for (int64_t i = lane; i < heads; i += lanes) {
      AttentionHead head = head_of(shape, i, x, saved.as<float>());
      head.out = y + out_offset(shape, i);
      kernels().attention(head, scratch + lane * size);
    }
  });
  stage.finish();
}

void CpuOps::attention_backward(TensorView dqkv, TensorView dout,
                                TensorView out, TensorView saved,
                                TensorView qkv, const AttentionShape& shape) {
  Staging stage(pool_);
  const int64_t heads = shape.batch * shape.heads;
  const int64_t elements = heads * shape.sequence * shape.head_size;
  const int64_t width = shape.heads * shape.head_size;
  const float* x = stage.read(qkv, 3 * elements);
  const float* g = stage.read(dout, elements);
  const float* y = stage.read(out, elements);
  float* dx = stage.write(dqkv, 3 * elements);
  const int64_t size =
      kernels().attention_scratch(shape.sequence, shape.head_size, true);
  const int64_t lanes = std::min<int64_t>(heads, cpu_threads());
  float* scratch = stage.scratch(lanes * size);
  parallel_for(lanes, [&](int64_t lane) {
    for (int64_t i = lane; i < heads; i += lanes) {
      AttentionHead head = head_of(shape, i, x, saved.as<float>());
      head.out = const_cast<float*>(y) + out_offset(shape, i);
      head.dout = g + out_offset(shape, i);
      head.dq = dx + (head.q - x);
      head.dk = head.dq + width;
      head.dv = head.dq + 2 * width;
      kernels().attention_backward(head, scratch + lane * size);
    }
  });
  stage.finish();
}

}  // namespace gpt
