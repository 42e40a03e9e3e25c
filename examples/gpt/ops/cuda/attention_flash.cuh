/// \file
/// What the kernels of flash attention share: constants and addresses.
#pragma once

#include "examples/gpt/ops/cuda/attention.h"
#include "examples/gpt/ops/cuda/attention_tile.cuh"
#include "examples/gpt/ops/cuda/dispatch.cuh"

namespace gpt::cuda {

inline constexpr float kLog2E = 1.4426950408889634f;
/// Four warps, each with 16 rows of the block's 64.
inline constexpr int kFlashThreads = 128;
inline constexpr int kFlashRows = 64;

/// Sequence and head counts as the kernels want them, and where the matrices
/// of one head of one sample start.
struct HeadLayout {
  int sequence;
  int heads;
  int head_size;

  /// Elements from a token to the next in qkv and in out.
  __host__ __device__ std::int64_t qkv_stride() const {
    return std::int64_t{3} * heads * head_size;
  }
  __host__ __device__ std::int64_t out_stride() const {
    return std::int64_t{1} * heads * head_size;
  }
  /// Start of part 0 (q), 1 (k) or 2 (v) of sample `head / heads`.
  __device__ std::int64_t qkv_start(int head, int part) const {
    return head / heads * (sequence * qkv_stride()) +
           (part * heads + head % heads) * head_size;
  }
  __device__ std::int64_t out_start(int head) const {
    return head / heads * (sequence * out_stride()) + head % heads * head_size;
  }
};

inline HeadLayout head_layout(const AttentionShape& shape) {
  return {static_cast<int>(shape.sequence), static_cast<int>(shape.heads),
          static_cast<int>(shape.head_size)};
}

/// 2^x; -inf gives 0.
__device__ inline float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// Sum and maximum over the four threads that share a row of c-fragments.
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/// A-fragments of a warp's 16 rows: held in registers where those suffice,
/// else read from the tile at each use.
template <int D, bool kHeld>
struct RowFragments {
  unsigned held[kHeld ? D / 16 : 1][4];
  const bf16* tile;
  int row;

  /// Call once the tile has arrived.
  __device__ void init(const bf16* from, int first_row) {
    tile = from;
    row = first_row;
    if constexpr (kHeld) {
#pragma unroll
      for (int k = 0; k < D / 16; ++k) load_a<D>(held[k], tile, row, k);
    }
  }
  __device__ void operator()(int k, unsigned (&a)[4]) const {
    if constexpr (kHeld) {
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = held[k][i];
    } else {
      load_a<D>(a, tile, row, k);
    }
  }
};

/// Calls body.operator()<D>() for a supported head size.
template <typename Body>
void with_head_size(std::int64_t head_size, const Body& body) {
  switch (head_size) {
    case 32: return body.template operator()<32>();
    case 64: return body.template operator()<64>();
    default: return body.template operator()<128>();
  }
}

/// Launches with the dynamic shared memory opted in.
template <typename... Parameters, typename... Args>
void launch_flash(const Context& context, void (*kernel)(Parameters...),
                  const AttentionShape& shape, int shared_bytes,
                  const Args&... args) {
  GPT_CUDA(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  const dim3 blocks(static_cast<unsigned>(ceil_div(shape.sequence, kFlashRows)),
                    static_cast<unsigned>(shape.batch * shape.heads));
  kernel<<<blocks, kFlashThreads, static_cast<unsigned>(shared_bytes),
           context.stream>>>(args...);
  GPT_CUDA(cudaGetLastError());
}

}  // namespace gpt::cuda
