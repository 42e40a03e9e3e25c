#include <cmath>

#include "examples/gpt/ops/cuda/attention_flash.cuh"

namespace gpt::cuda {
namespace {

/// Rows and columns of a tile of scores. Eight threads share a row: thread
/// (row, c) has columns c, c + 8, c + 16, c + 24, and of a head's elements
/// c, c + 8, and so on.
constexpr int kTile = 32;
constexpr int kLanes = 8;
constexpr int kThreads = kTile * kLanes;
constexpr int kColumns = kTile / kLanes;

/// Floats of a tile of `D` columns; one more a row keeps banks apart.
__host__ __device__ constexpr int tile_floats(int columns) {
  return kTile * (columns + 1);
}

/// Reads rows [first, first + 32) of a matrix into fp32; past `limit`, 0.
template <typename T>
__device__ void load_tile(float* tile, const T* matrix, std::int64_t stride,
                          int first, int limit, int size) {
  for (int i = threadIdx.x; i < kTile * size; i += kThreads) {
    const int row = i / size, column = i % size;
    tile[row * (size + 1) + column] =
        first + row < limit
            ? load_float(matrix + (first + row) * stride + column)
            : 0.0f;
  }
}

__device__ float row_sum(float x) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

__device__ float row_max(float x) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, offset));
  return x;
}

__device__ float dot(const float* a, const float* b, int size) {
  float sum = 0;
  for (int i = 0; i < size; ++i) sum = fmaf(a[i], b[i], sum);
  return sum;
}

/// sums[j] += sum over columns of row[column] * tile[column][c + 8 j].
template <int kEach>
__device__ void add_product(float (&sums)[kEach], const float* row,
                            const float* tile, int c, int size) {
  for (int column = 0; column < kTile; ++column) {
    const float share = row[column];
    const float* const from = tile + column * (size + 1) + c;
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      if (c + kLanes * j < size)
        sums[j] = fmaf(share, from[kLanes * j], sums[j]);
  }
}

template <typename T, int kEach>
__device__ void store_row(T* to, const float (&sums)[kEach], int c, int size,
                          float scale) {
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    if (c + kLanes * j < size)
      store_float(to + c + kLanes * j, sums[j] * scale);
}

/// The thread's place, and the tiles in shared memory in the order of use.
struct Place {
  int row = static_cast<int>(threadIdx.x) / kLanes;
  int c = static_cast<int>(threadIdx.x) % kLanes;
  int head = static_cast<int>(blockIdx.x);
};

template <typename T, int kEach>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(T* out, float* lse, const T* qkv, HeadLayout layout,
                   float scale) {
  extern __shared__ float shared[];
  const int size = layout.head_size, sequence = layout.sequence;
  float* const q = shared;
  float* const k = q + tile_floats(size);
  float* const v = k + tile_floats(size);
  float* const shares = v + tile_floats(size);
  const Place at;
  const int first = static_cast<int>(blockIdx.y) * kTile;
  const int query = first + at.row;
  const std::int64_t stride = layout.qkv_stride();
  load_tile(q, qkv + layout.qkv_start(at.head, 0), stride, first, sequence,
            size);
  float sums[kEach] = {};
  float maximum = -INFINITY, sum = 0;
  for (int key = 0; key < first + kTile && key < sequence; key += kTile) {
    __syncthreads();
    load_tile(k, qkv + layout.qkv_start(at.head, 1), stride, key, sequence,
              size);
    load_tile(v, qkv + layout.qkv_start(at.head, 2), stride, key, sequence,
              size);
    __syncthreads();
    float scores[kColumns];
    float largest = maximum;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int column = at.c + kLanes * j;
      scores[j] = key + column <= query && key + column < sequence
                      ? scale * dot(q + at.row * (size + 1),
                                    k + column * (size + 1), size)
                      : -INFINITY;
      largest = fmaxf(largest, scores[j]);
    }
    // Every row sees key 0 in its first tile, so this is finite.
    largest = row_max(largest);
    const float keep = expf(maximum - largest);
    maximum = largest;
    float total = 0;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const float share = expf(scores[j] - largest);
      shares[at.row * (kTile + 1) + at.c + kLanes * j] = share;
      total += share;
    }
    sum = sum * keep + row_sum(total);
#pragma unroll
    for (int j = 0; j < kEach; ++j) sums[j] *= keep;
    __syncwarp();  // a row's eight threads are of one warp
    add_product(sums, shares + at.row * (kTile + 1), v, at.c, size);
  }
  if (query >= sequence) return;
  store_row(out + layout.out_start(at.head) + query * layout.out_stride(), sums,
            at.c, size, 1.0f / sum);
  if (at.c == 0)
    lse[static_cast<std::int64_t>(at.head) * sequence + query] =
        maximum + logf(sum);
}

template <typename T>
struct BackwardPointers {
  T* dqkv;
  const T* dout;
  const T* out;
  const T* qkv;
  const float* lse;
  float* delta;
};

/// dq, and delta for the kernel after it.
template <typename T, int kEach>
__global__ void __launch_bounds__(kThreads)
    query_kernel(const BackwardPointers<T> p, HeadLayout layout, float scale) {
  extern __shared__ float shared[];
  const int size = layout.head_size, sequence = layout.sequence;
  float* const q = shared;
  float* const dout = q + tile_floats(size);
  float* const k = dout + tile_floats(size);
  float* const v = k + tile_floats(size);
  float* const ds = v + tile_floats(size);
  const Place at;
  const int first = static_cast<int>(blockIdx.y) * kTile;
  const int query = first + at.row;
  const std::int64_t stride = layout.qkv_stride();
  const std::int64_t out_start = layout.out_start(at.head);
  load_tile(q, p.qkv + layout.qkv_start(at.head, 0), stride, first, sequence,
            size);
  load_tile(dout, p.dout + out_start, layout.out_stride(), first, sequence,
            size);
  load_tile(k, p.out + out_start, layout.out_stride(), first, sequence, size);
  __syncthreads();
  float delta = 0;
  for (int i = at.c; i < size; i += kLanes)
    delta += dout[at.row * (size + 1) + i] * k[at.row * (size + 1) + i];
  delta = row_sum(delta);
  const std::int64_t row =
      static_cast<std::int64_t>(at.head) * sequence + query;
  const float lse = query < sequence ? p.lse[row] : INFINITY;
  if (at.c == 0 && query < sequence) p.delta[row] = delta;

  float sums[kEach] = {};
  for (int key = 0; key < first + kTile && key < sequence; key += kTile) {
    __syncthreads();
    load_tile(k, p.qkv + layout.qkv_start(at.head, 1), stride, key, sequence,
              size);
    load_tile(v, p.qkv + layout.qkv_start(at.head, 2), stride, key, sequence,
              size);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int column = at.c + kLanes * j;
      float gradient = 0;
      if (key + column <= query && key + column < sequence) {
        const float* const k_row = k + column * (size + 1);
        const float score = scale * dot(q + at.row * (size + 1), k_row, size);
        const float dp =
            dot(dout + at.row * (size + 1), v + column * (size + 1), size);
        gradient = expf(score - lse) * (dp - delta);
      }
      ds[at.row * (kTile + 1) + column] = gradient;
    }
    __syncwarp();
    add_product(sums, ds + at.row * (kTile + 1), k, at.c, size);
  }
  if (query < sequence)
    store_row(p.dqkv + layout.qkv_start(at.head, 0) + query * stride, sums,
              at.c, size, scale);
}

/// dk and dv: keys in rows, queries in columns.
template <typename T, int kEach>
__global__ void __launch_bounds__(kThreads)
    key_kernel(const BackwardPointers<T> p, HeadLayout layout, float scale) {
  extern __shared__ float shared[];
  const int size = layout.head_size, sequence = layout.sequence;
  float* const k = shared;
  float* const v = k + tile_floats(size);
  float* const q = v + tile_floats(size);
  float* const dout = q + tile_floats(size);
  float* const shares = dout + tile_floats(size);
  float* const ds = shares + tile_floats(kTile);
  const Place at;
  const int first = static_cast<int>(blockIdx.y) * kTile;
  const int key = first + at.row;
  const std::int64_t stride = layout.qkv_stride();
  const std::int64_t row = static_cast<std::int64_t>(at.head) * sequence;
  load_tile(k, p.qkv + layout.qkv_start(at.head, 1), stride, first, sequence,
            size);
  load_tile(v, p.qkv + layout.qkv_start(at.head, 2), stride, first, sequence,
            size);
  float dk[kEach] = {}, dv[kEach] = {};
  for (int query = first; query < sequence; query += kTile) {
    __syncthreads();
    load_tile(q, p.qkv + layout.qkv_start(at.head, 0), stride, query, sequence,
              size);
    load_tile(dout, p.dout + layout.out_start(at.head), layout.out_stride(),
              query, sequence, size);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int column = at.c + kLanes * j;
      float share = 0, gradient = 0;
      if (key <= query + column && query + column < sequence) {
        const float score =
            scale * dot(k + at.row * (size + 1), q + column * (size + 1), size);
        const float dp =
            dot(v + at.row * (size + 1), dout + column * (size + 1), size);
        share = expf(score - p.lse[row + query + column]);
        gradient = share * (dp - p.delta[row + query + column]);
      }
      shares[at.row * (kTile + 1) + column] = share;
      ds[at.row * (kTile + 1) + column] = gradient;
    }
    __syncwarp();
    add_product(dv, shares + at.row * (kTile + 1), dout, at.c, size);
    add_product(dk, ds + at.row * (kTile + 1), q, at.c, size);
  }
  if (key >= sequence) return;
  T* const to = p.dqkv + key * stride;
  store_row(to + layout.qkv_start(at.head, 1), dk, at.c, size, scale);
  store_row(to + layout.qkv_start(at.head, 2), dv, at.c, size, 1.0f);
}

/// body.operator()<T, kEach>() where 8 * kEach holds a head's elements.
template <typename Body>
void with_size(const Context& context, const AttentionShape& shape,
               ddp::DType dtype, const Body& body) {
  const std::int64_t shared =
      4 * (4 * tile_floats(static_cast<int>(shape.head_size)) +
           2 * tile_floats(kTile));
  DDP_EXPECT(shape.head_size <= 256 && shared <= context.shared_bytes,
             InvalidArgument, "attention with heads of ", shape.head_size,
             " elements needs ", shared, " bytes of shared memory, of which ",
             "the GPU has ", context.shared_bytes, "; use heads of up to ",
             "256 elements, better 64 or 128");
  with_dtype(dtype, [&]<typename T>() {
    if (shape.head_size <= 64)
      body.template operator()<T, 8>();
    else if (shape.head_size <= 128)
      body.template operator()<T, 16>();
    else
      body.template operator()<T, 32>();
  });
}

template <typename... Parameters, typename... Args>
void launch(const Context& context, void (*kernel)(Parameters...),
            const AttentionShape& shape, int tiles, const Args&... args) {
  const int shared =
      4 * (tiles * tile_floats(static_cast<int>(shape.head_size)) +
           2 * tile_floats(kTile));
  GPT_CUDA(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  const dim3 blocks(static_cast<unsigned>(shape.batch * shape.heads),
                    static_cast<unsigned>(ceil_div(shape.sequence, kTile)));
  kernel<<<blocks, kThreads, static_cast<unsigned>(shared), context.stream>>>(
      args...);
  GPT_CUDA(cudaGetLastError());
}

float scale_of(const AttentionShape& shape) {
  return 1.0f / std::sqrt(static_cast<float>(shape.head_size));
}

}  // namespace

void simple_attention_forward(const Context& context,
                              const AttentionForward& args) {
  with_size(context, args.shape, args.qkv.dtype, [&]<typename T, int kEach>() {
    launch(context, forward_kernel<T, kEach>, args.shape, 3, args.out.as<T>(),
           args.lse.as<float>(), args.qkv.as<const T>(),
           head_layout(args.shape), scale_of(args.shape));
  });
}

void simple_attention_backward(Context& context,
                               const AttentionBackward& args) {
  const AttentionShape& shape = args.shape;
  with_size(context, shape, args.qkv.dtype, [&]<typename T, int kEach>() {
    const BackwardPointers<T> pointers{
        args.dqkv.as<T>(),
        args.dout.as<const T>(),
        args.out.as<const T>(),
        args.qkv.as<const T>(),
        args.lse.as<const float>(),
        context.scratch.get<float>(static_cast<std::size_t>(
            shape.batch * shape.heads * shape.sequence))};
    launch(context, query_kernel<T, kEach>, shape, 4, pointers,
           head_layout(shape), scale_of(shape));
    launch(context, key_kernel<T, kEach>, shape, 4, pointers,
           head_layout(shape), scale_of(shape));
  });
}

}  // namespace gpt::cuda
