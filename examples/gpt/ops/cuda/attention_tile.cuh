/// \file
/// Tiles of bf16 in shared memory and the tensor-core instructions on them.
///
/// A tile is rows x D, row by row in chunks of 8 elements (16 bytes). Chunk c
/// of row r lies at place c ^ swizzle(r), so that the eight rows that one
/// ldmatrix reads at the same c come from different banks.
///
/// Fragments of mma.m16n8k16, with g = lane / 4 and t = lane % 4:
///     a[0..3]: (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), 2 wide
///     b[0..1]: column g, rows 2t and 2t + 8, 2 deep
///     c[0..3]: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
#pragma once

#include "examples/gpt/ops/cuda/vector.cuh"

namespace gpt::cuda {

template <int D>
__device__ inline int tile_offset(int row, int chunk) {
  const int swizzle = D == 32 ? (row >> 1) & 3 : row & 7;
  return row * D + (chunk ^ swizzle) * 8;
}

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Starts a copy of 16 bytes, or writes zeros if not `valid`. `from` must be
/// an address of global memory either way.
__device__ inline void copy_async(bf16* to, const bf16* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes)
               : "memory");
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
/// Waits until at most `kPending` of the thread's newest groups are open.
template <int kPending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

/// Starts the copy of rows [first, first + kRows) of a matrix whose rows are
/// `stride` elements apart; rows from `limit` on become zeros.
template <int D, int kRows, int kThreads>
__device__ inline void copy_tile(bf16* tile, const bf16* matrix,
                                 std::int64_t stride, int first, int limit) {
  constexpr int kChunks = D / 8;
#pragma unroll
  for (int i = threadIdx.x; i < kRows * kChunks; i += kThreads) {
    const int row = i / kChunks, chunk = i % kChunks;
    const bool valid = first + row < limit;
    copy_async(tile + tile_offset<D>(row, chunk),
               matrix + (valid ? first + row : 0) * stride + chunk * 8, valid);
  }
}

__device__ inline void load_matrices(unsigned (&r)[4], const bf16* row) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(shared_address(row))
      : "memory");
}
__device__ inline void load_matrices_transposed(unsigned (&r)[4],
                                                const bf16* row) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, "
      "[%4];\n"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(shared_address(row))
      : "memory");
}

/// The a-fragment of rows [row, row + 16), columns [16 k, 16 k + 16).
template <int D>
__device__ inline void load_a(unsigned (&a)[4], const bf16* tile, int row,
                              int k) {
  const int lane = threadIdx.x % 32, matrix = lane / 8;
  load_matrices(a, tile + tile_offset<D>(row + (matrix & 1) * 8 + lane % 8,
                                         2 * k + (matrix >> 1)));
}

/// b-fragments of the transposed tile: its rows [row, row + 16) are two
/// neighbouring blocks of 8 columns of b (b[0..1] and b[2..3]), its columns
/// [16 k, 16 k + 16) are b's rows.
template <int D>
__device__ inline void load_b_of_rows(unsigned (&b)[4], const bf16* tile,
                                      int row, int k) {
  const int lane = threadIdx.x % 32, matrix = lane / 8;
  load_matrices(b, tile + tile_offset<D>(row + (matrix >> 1) * 8 + lane % 8,
                                         2 * k + (matrix & 1)));
}

/// b-fragments of the tile as it lies: rows [row, row + 16), and columns
/// [16 n, 16 n + 16) as two blocks of 8.
template <int D>
__device__ inline void load_b_of_columns(unsigned (&b)[4], const bf16* tile,
                                         int row, int n) {
  const int lane = threadIdx.x % 32, matrix = lane / 8;
  load_matrices_transposed(
      b, tile + tile_offset<D>(row + (matrix & 1) * 8 + lane % 8,
                               2 * n + (matrix >> 1)));
}

/// c += a * b.
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4],
                                    unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// c[16 x kRows] += a[16 x D] * tile[kRows x D]^T, where fragment(k, a) gives
/// a's k-th fragment.
template <int D, int kRows, typename Fragment>
__device__ inline void multiply_by_rows(float (&c)[kRows / 8][4],
                                        const bf16* tile,
                                        const Fragment& fragment) {
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    unsigned a[4];
    fragment(k, a);
#pragma unroll
    for (int n = 0; n < kRows / 16; ++n) {
      unsigned b[4];
      load_b_of_rows<D>(b, tile, 16 * n, k);
      multiply_add(c[2 * n], a, b[0], b[1]);
      multiply_add(c[2 * n + 1], a, b[2], b[3]);
    }
  }
}

/// c[16 x D] += p[16 x kRows] * tile[kRows x D], p in c-fragments of fp32
/// that are rounded to bf16.
template <int D, int kRows>
__device__ inline void multiply_by_columns(float (&c)[D / 8][4],
                                           const float (&p)[kRows / 8][4],
                                           const bf16* tile) {
#pragma unroll
  for (int k = 0; k < kRows / 16; ++k) {
    const unsigned a[4] = {pack_pair(p[2 * k][0], p[2 * k][1]),
                           pack_pair(p[2 * k][2], p[2 * k][3]),
                           pack_pair(p[2 * k + 1][0], p[2 * k + 1][1]),
                           pack_pair(p[2 * k + 1][2], p[2 * k + 1][3])};
#pragma unroll
    for (int n = 0; n < D / 16; ++n) {
      unsigned b[4];
      load_b_of_columns<D>(b, tile, 16 * k, n);
      multiply_add(c[2 * n], a, b[0], b[1]);
      multiply_add(c[2 * n + 1], a, b[2], b[3]);
    }
  }
}

/// Stores the warp's 16 x D of c-fragments, each times `scale` of its half
/// (row g, row g + 8), to rows [first, limit) of a matrix, through the 16
/// rows of `tile` from `tile_row` on, which only this warp uses.
template <int D>
__device__ inline void store_rows(bf16* matrix, std::int64_t stride, int first,
                                  int limit, bf16* tile, int tile_row,
                                  const float (&c)[D / 8][4], float scale_low,
                                  float scale_high) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
    const unsigned low = pack_pair(c[n][0] * scale_low, c[n][1] * scale_low);
    const unsigned high = pack_pair(c[n][2] * scale_high, c[n][3] * scale_high);
    *reinterpret_cast<unsigned*>(tile + tile_offset<D>(tile_row + g, n) +
                                 2 * t) = low;
    *reinterpret_cast<unsigned*>(tile + tile_offset<D>(tile_row + g + 8, n) +
                                 2 * t) = high;
  }
  __syncwarp();
  constexpr int kChunks = D / 8;
#pragma unroll
  for (int i = lane; i < 16 * kChunks; i += 32) {
    const int row = i / kChunks, chunk = i % kChunks;
    if (first + row < limit)
      store<8>(matrix + (first + row) * stride + chunk * 8,
               load<8>(tile + tile_offset<D>(tile_row + row, chunk)));
  }
}

}  // namespace gpt::cuda
