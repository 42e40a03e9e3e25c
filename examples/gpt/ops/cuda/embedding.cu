#include <bit>
#include <climits>
#include <cub/device/device_radix_sort.cuh>

#include "examples/gpt/ops/cuda/dispatch.cuh"
#include "examples/gpt/ops/cuda/embedding.h"

namespace gpt::cuda {
namespace {

constexpr int kThreads = 128;
/// Sorted positions that one block sums.
constexpr int kChunk = 16;

template <typename T, int V>
__global__ void forward_kernel(T* out, const std::int32_t* tokens,
                               const T* token_table, const T* position_table,
                               std::int64_t packs, std::int64_t sequence,
                               std::int64_t width) {
  const std::int64_t i =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= packs) return;
  const std::int64_t row = i * V / width, column = i * V % width;
  float x[V], y[V];
  load<V>(token_table + tokens[row] * width + column).unpack(x);
  load<V>(position_table + row % sequence * width + column).unpack(y);
#pragma unroll
  for (int j = 0; j < V; ++j) x[j] += y[j];
  Pack<T, V> sum;
  sum.pack(x);
  store<V>(out + i * V, sum);
}

/// gradient[t] (+)= the sum over the batch of dout[b * sequence + t].
template <typename T, int V>
__global__ void position_kernel(GradientPointer gradient, const T* dout,
                                std::int64_t rows, std::int64_t sequence,
                                std::int64_t width) {
  const std::int64_t i =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V;
  if (i >= sequence * width) return;
  float sum[V] = {};
#pragma unroll 8
  for (std::int64_t j = i; j < rows * width; j += sequence * width) {
    float x[V];
    load<V>(dout + j).unpack(x);
#pragma unroll
    for (int k = 0; k < V; ++k) sum[k] += x[k];
  }
  gradient.put_pack<V>(i, sum);
}

__global__ void iota_kernel(std::int32_t* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] = i;
}

/// Where the runs of equal tokens lie in sorted order.
///
///     chunk       | 0           | 1           | 2           |
///     tokens      | 3 3 5 5 5 8 | 8 8 8 8 8 8 | 8 9 9 9 9 9 |
///     tail of 0 = the 8 in it; heads of 1 and 2 = the 8s in them
///
/// A run inside one chunk goes straight to the gradient. A run over several
/// leaves a tail in its first chunk and a head in each further one, which
/// finish_kernel() adds in order: partials[chunk][head or tail][width].
struct Runs {
  const std::int32_t* tokens;
  const std::int32_t* rows;
  float* partials;
  int count;

  __device__ float* head(int chunk, std::int64_t width) const {
    return partials + static_cast<std::int64_t>(chunk) * 2 * width;
  }
  __device__ float* tail(int chunk, std::int64_t width) const {
    return head(chunk, width) + width;
  }
};

/// Grid (chunks, column strips); a thread owns V columns of the strip.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads)
    chunk_kernel(GradientPointer gradient, const T* __restrict__ dout,
                 Runs runs, std::int64_t width) {
  const int chunk = static_cast<int>(blockIdx.x);
  const int begin = chunk * kChunk;
  const int size = min(kChunk, runs.count - begin);
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x) * V;
  if (column >= width) return;
  Pack<T, V> packs[kChunk];
#pragma unroll
  for (int i = 0; i < kChunk; ++i)
    if (i < size)
      packs[i] = load<V>(dout + runs.rows[begin + i] * width + column);

  const std::int32_t before = begin > 0 ? runs.tokens[begin - 1] : -1;
  const std::int32_t after =
      begin + size < runs.count ? runs.tokens[begin + size] : -1;
  bool is_head = begin > 0 && before == runs.tokens[begin];
  float sum[V] = {};
#pragma unroll
  for (int i = 0; i < kChunk; ++i) {
    if (i >= size) break;
    float x[V];
    packs[i].unpack(x);
#pragma unroll
    for (int j = 0; j < V; ++j) sum[j] += x[j];
    const std::int32_t token = runs.tokens[begin + i];
    const bool is_last = i + 1 == size;
    const std::int32_t next = is_last ? after : runs.tokens[begin + i + 1];
    if (!is_last && next == token) continue;  // the run goes on
    if (is_head || (is_last && next == token)) {
      float* const partial =
          (is_head ? runs.head(chunk, width) : runs.tail(chunk, width)) +
          column;
#pragma unroll
      for (int j = 0; j < V; ++j) partial[j] = sum[j];
    } else {
      gradient.put_pack<V>(token * width + column, sum);
    }
    is_head = false;
#pragma unroll
    for (int j = 0; j < V; ++j) sum[j] = 0;
  }
}

/// The block of a run's first chunk adds the run's partials in order.
template <int V>
__global__ void __launch_bounds__(kThreads)
    finish_kernel(GradientPointer gradient, Runs runs, std::int64_t width) {
  const int chunk = static_cast<int>(blockIdx.x);
  const int begin = chunk * kChunk;
  const int end = min(begin + kChunk, runs.count);
  if (end == runs.count) return;
  const std::int32_t token = runs.tokens[end - 1];
  const bool goes_on = runs.tokens[end] == token;
  const bool began_earlier = begin > 0 && runs.tokens[begin - 1] == token;
  if (!goes_on || began_earlier) return;
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x) * V;
  if (column >= width) return;
  float sum[V];
#pragma unroll
  for (int j = 0; j < V; ++j) sum[j] = runs.tail(chunk, width)[column + j];
  for (int next = chunk + 1;
       next * kChunk < runs.count && runs.tokens[next * kChunk] == token;
       ++next) {
    const float* const head = runs.head(next, width) + column;
#pragma unroll
    for (int j = 0; j < V; ++j) sum[j] += head[j];
  }
  gradient.put_pack<V>(token * width + column, sum);
}

void clear(const Context& context, const ddp::GradientTarget& target) {
  GPT_CUDA(cudaMemsetAsync(target.tensor.data, 0, target.tensor.bytes(),
                           context.stream));
}

/// Sorts the tokens and returns their runs; all memory is scratch.
Runs sorted_runs(Context& context, const EmbeddingBackward& args) {
  const int count = static_cast<int>(args.rows);
  const int bits = std::bit_width(static_cast<unsigned>(args.vocabulary));
  std::size_t sort_bytes = 0;
  const std::int32_t* const tokens = args.tokens.as<const std::int32_t>();
  const auto sort = [&](void* memory, const std::int32_t* rows,
                        std::int32_t* sorted_tokens,
                        std::int32_t* sorted_rows) {
    GPT_CUDA(cub::DeviceRadixSort::SortPairs(memory, sort_bytes, tokens,
                                             sorted_tokens, rows, sorted_rows,
                                             count, 0, bits, context.stream));
  };
  sort(nullptr, nullptr, nullptr, nullptr);

  const auto ints = aligned_bytes(static_cast<std::size_t>(count) * 4);
  const auto chunks = static_cast<std::size_t>(ceil_div(count, kChunk));
  const auto partial_bytes =
      chunks * 2 * static_cast<std::size_t>(args.width) * sizeof(float);
  char* const memory = static_cast<char*>(context.scratch.get(
      3 * ints + aligned_bytes(sort_bytes) + partial_bytes));
  const auto ints_at = [&](std::size_t i) {
    return reinterpret_cast<std::int32_t*>(memory + i * ints);
  };
  iota_kernel<<<static_cast<unsigned>(ceil_div(count, kThreads)), kThreads, 0,
                context.stream>>>(ints_at(0), count);
  GPT_CUDA(cudaGetLastError());
  sort(memory + 3 * ints, ints_at(0), ints_at(1), ints_at(2));
  return {
      ints_at(1), ints_at(2),
      reinterpret_cast<float*>(memory + 3 * ints + aligned_bytes(sort_bytes)),
      count};
}

}  // namespace

void embedding_forward(const Context& context, const EmbeddingForward& args) {
  if (args.rows * args.width == 0) return;
  with_access(
      args.out.dtype, args.width,
      {args.out.data, args.token_table.data, args.position_table.data},
      [&]<typename T, int V>() {
        const std::int64_t packs = args.rows * args.width / V;
        forward_kernel<T, V><<<static_cast<unsigned>(ceil_div(packs, kThreads)),
                               kThreads, 0, context.stream>>>(
            args.out.as<T>(), args.tokens.as<const std::int32_t>(),
            args.token_table.as<const T>(), args.position_table.as<const T>(),
            packs, args.sequence, args.width);
      });
  GPT_CUDA(cudaGetLastError());
}

void embedding_backward(Context& context, const EmbeddingBackward& args) {
  DDP_EXPECT(args.rows <= INT_MAX / 2, InvalidArgument,
             "embedding_backward of ", args.rows, " rows exceeds the limit of ",
             INT_MAX / 2, "; use smaller micro-batches");
  // Tokens that do not occur, and positions past the sequence, get zeros.
  if (!args.token_table.accumulate) clear(context, args.token_table);
  if (!args.position_table.accumulate) clear(context, args.position_table);
  if (args.rows * args.width == 0) return;
  const GradientPointer tokens =
      gradient_pointer(args.token_table.tensor, true);
  const GradientPointer positions =
      gradient_pointer(args.position_table.tensor, true);
  const Runs runs = sorted_runs(context, args);
  with_access(
      args.dout.dtype, args.width, {args.dout.data}, [&]<typename T, int V>() {
        const std::int64_t packs = args.sequence * args.width / V;
        position_kernel<T, V>
            <<<static_cast<unsigned>(ceil_div(packs, kThreads)), kThreads, 0,
               context.stream>>>(positions, args.dout.as<const T>(), args.rows,
                                 args.sequence, args.width);
        const dim3 blocks(
            static_cast<unsigned>(ceil_div(args.rows, kChunk)),
            static_cast<unsigned>(ceil_div(args.width, kThreads * V)));
        chunk_kernel<T, V><<<blocks, kThreads, 0, context.stream>>>(
            tokens, args.dout.as<const T>(), runs, args.width);
        finish_kernel<V>
            <<<blocks, kThreads, 0, context.stream>>>(tokens, runs, args.width);
      });
  GPT_CUDA(cudaGetLastError());
}

}  // namespace gpt::cuda
