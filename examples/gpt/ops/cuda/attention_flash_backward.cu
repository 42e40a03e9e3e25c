#include <cmath>

#include "examples/gpt/ops/cuda/attention_flash.cuh"

namespace gpt::cuda {
namespace {

/// Keys of a tile in the dq kernel; each block has 64 queries.
constexpr int kKeys = 64;
/// Queries of a tile in the dk and dv kernel; each block has 64 keys. With
/// heads of 128 the accumulators take most registers: fewer queries.
template <int D>
constexpr int kQueries = D == 128 ? 32 : 64;
/// Whether the block's own rows fit into registers beside the accumulators.
template <int D>
constexpr bool kHeld = D <= 64;

/// q | dout | k, two stages | v, two stages | delta.
template <int D>
constexpr int kQueryShared = (2 * kFlashRows + 4 * kKeys) * D * 2 + kFlashRows *
                                                                        4;
/// k | v | q, two stages | dout, two stages | lse and delta, two stages.
template <int D>
constexpr int kKeyShared = (2 * kFlashRows + 4 * kQueries<D>)*D * 2 +
                           4 * kQueries<D> * 4;

struct Pointers {
  bf16* dqkv;
  const bf16* dout;
  const bf16* out;
  const bf16* qkv;
  const float* lse;
  /// delta[batch * heads, sequence] = sum over a row of dout * out.
  float* delta;
};

/// Computes delta of the block's queries, two threads a row, into `shared`
/// and global memory.
template <int D>
__device__ void compute_delta(const Pointers& p, const HeadLayout& layout,
                              int head, int first, float* shared) {
  const int row = static_cast<int>(threadIdx.x) / 2;
  const int query = first + row;
  float sum = 0;
  if (query < layout.sequence) {
    const std::int64_t at = layout.out_start(head) +
                            query * layout.out_stride() +
                            static_cast<int>(threadIdx.x) % 2 * (D / 2);
#pragma unroll
    for (int c = 0; c < D / 2; c += 8) {
      float x[8], y[8];
      load<8>(p.dout + at + c).unpack(x);
      load<8>(p.out + at + c).unpack(y);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum += x[j] * y[j];
    }
  }
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  if (threadIdx.x % 2 != 0) return;
  shared[row] = sum;
  if (query < layout.sequence)
    p.delta[static_cast<std::int64_t>(head) * layout.sequence + query] = sum;
}

/// dq = scale * ds * k, with p = exp(s - lse) and ds = p * (dp - delta).
template <int D>
__global__ void __launch_bounds__(kFlashThreads)
    query_kernel(const Pointers p, HeadLayout layout, float scale) {
  extern __shared__ __align__(128) unsigned char memory[];
  bf16* const q_tile = reinterpret_cast<bf16*>(memory);
  bf16* const dout_tile = q_tile + kFlashRows * D;
  bf16* const k_tiles = dout_tile + kFlashRows * D;
  bf16* const v_tiles = k_tiles + 2 * kKeys * D;
  float* const deltas = reinterpret_cast<float*>(v_tiles + 2 * kKeys * D);
  const int tile = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  const int first_query = tile * kFlashRows;
  const int sequence = layout.sequence;
  const std::int64_t stride = layout.qkv_stride();
  const bf16* const k = p.qkv + layout.qkv_start(head, 1);
  const bf16* const v = p.qkv + layout.qkv_start(head, 2);
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int lane = static_cast<int>(threadIdx.x) % 32;

  const auto copy_keys = [&](int key_tile) {
    const int at = key_tile % 2 * kKeys * D;
    copy_tile<D, kKeys, kFlashThreads>(k_tiles + at, k, stride,
                                       key_tile * kKeys, sequence);
    copy_tile<D, kKeys, kFlashThreads>(v_tiles + at, v, stride,
                                       key_tile * kKeys, sequence);
    commit_copies();
  };
  copy_tile<D, kFlashRows, kFlashThreads>(
      q_tile, p.qkv + layout.qkv_start(head, 0), stride, first_query, sequence);
  copy_tile<D, kFlashRows, kFlashThreads>(
      dout_tile, p.dout + layout.out_start(head), layout.out_stride(),
      first_query, sequence);
  copy_keys(0);
  compute_delta<D>(p, layout, head, first_query, deltas);

  RowFragments<D, kHeld<D>> q_rows, dout_rows;
  float lse_log2[2], delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = first_query + warp_row + lane / 4 + half * 8;
    // Past the end: p becomes 0.
    lse_log2[half] =
        query < sequence
            ? p.lse[static_cast<std::int64_t>(head) * sequence + query] * kLog2E
            : INFINITY;
  }
  float dq[D / 8][4] = {};
  const float scale_log2 = scale * kLog2E;
  for (int key_tile = 0; key_tile <= tile; ++key_tile) {
    if (key_tile < tile) {
      copy_keys(key_tile + 1);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();
    if (key_tile == 0) {
      q_rows.init(q_tile, warp_row);
      dout_rows.init(dout_tile, warp_row);
      delta[0] = deltas[warp_row + lane / 4];
      delta[1] = deltas[warp_row + lane / 4 + 8];
    }
    const int at = key_tile % 2 * kKeys * D;
    float scores[kKeys / 8][4] = {}, dp[kKeys / 8][4] = {};
    multiply_by_rows<D, kKeys>(scores, k_tiles + at, q_rows);
    multiply_by_rows<D, kKeys>(dp, v_tiles + at, dout_rows);
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int query = warp_row + lane / 4 + i / 2 * 8;
        const int key = 8 * n + lane % 4 * 2 + i % 2;
        const bool masked = key_tile == tile && key > query;
        const float share =
            masked
                ? 0.0f
                : exp2_fast(fmaf(scores[n][i], scale_log2, -lse_log2[i / 2]));
        dp[n][i] = share * (dp[n][i] - delta[i / 2]);
      }
    }
    multiply_by_columns<D, kKeys>(dq, dp, k_tiles + at);
    __syncthreads();  // before the next copy overwrites this stage
  }
  store_rows<D>(p.dqkv + layout.qkv_start(head, 0), stride,
                first_query + warp_row, sequence, q_tile, warp_row, dq, scale,
                scale);
}

/// dv = p^T * dout and dk = scale * ds^T * q. Scores are computed transposed,
/// keys in rows, so that p^T and ds^T come out as the next product wants.
template <int D>
__global__ void __launch_bounds__(kFlashThreads)
    key_kernel(const Pointers p, HeadLayout layout, float scale) {
  constexpr int kTile = kQueries<D>;
  extern __shared__ __align__(128) unsigned char memory[];
  bf16* const k_tile = reinterpret_cast<bf16*>(memory);
  bf16* const v_tile = k_tile + kFlashRows * D;
  bf16* const q_tiles = v_tile + kFlashRows * D;
  bf16* const dout_tiles = q_tiles + 2 * kTile * D;
  float* const lses = reinterpret_cast<float*>(dout_tiles + 2 * kTile * D);
  float* const deltas = lses + 2 * kTile;
  // The first keys are seen by the most queries, and start first.
  const int first_key = static_cast<int>(blockIdx.x) * kFlashRows;
  const int head = static_cast<int>(blockIdx.y);
  const int sequence = layout.sequence;
  const std::int64_t stride = layout.qkv_stride();
  const bf16* const q = p.qkv + layout.qkv_start(head, 0);
  const bf16* const dout = p.dout + layout.out_start(head);
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int lane = static_cast<int>(threadIdx.x) % 32;

  const auto copy_queries = [&](int tile) {
    const int at = tile % 2 * kTile;
    copy_tile<D, kTile, kFlashThreads>(q_tiles + at * D, q, stride,
                                       tile * kTile, sequence);
    copy_tile<D, kTile, kFlashThreads>(
        dout_tiles + at * D, dout, layout.out_stride(), tile * kTile, sequence);
    commit_copies();
    const int i = static_cast<int>(threadIdx.x);
    if (i >= kTile) return;
    const int query = tile * kTile + i;
    const std::int64_t row = static_cast<std::int64_t>(head) * sequence + query;
    const bool valid = query < sequence;
    // Past the end: p becomes 0.
    lses[at + i] = valid ? p.lse[row] * kLog2E : INFINITY;
    deltas[at + i] = valid ? p.delta[row] : 0.0f;
  };
  copy_tile<D, kFlashRows, kFlashThreads>(
      k_tile, p.qkv + layout.qkv_start(head, 1), stride, first_key, sequence);
  copy_tile<D, kFlashRows, kFlashThreads>(
      v_tile, p.qkv + layout.qkv_start(head, 2), stride, first_key, sequence);
  const int first_tile = first_key / kTile;
  const int tiles = (sequence + kTile - 1) / kTile;
  copy_queries(first_tile);

  RowFragments<D, kHeld<D>> k_rows, v_rows;
  float dk[D / 8][4] = {}, dv[D / 8][4] = {};
  const float scale_log2 = scale * kLog2E;
  for (int tile = first_tile; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      copy_queries(tile + 1);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();
    if (tile == first_tile) {
      k_rows.init(k_tile, warp_row);
      v_rows.init(v_tile, warp_row);
    }
    const int at = tile % 2 * kTile;
    float scores[kTile / 8][4] = {}, dp[kTile / 8][4] = {};
    multiply_by_rows<D, kTile>(scores, q_tiles + at * D, k_rows);
    const bool diagonal = tile * kTile < first_key + kFlashRows;
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = 8 * n + lane % 4 * 2 + i % 2;
        const int key = first_key + warp_row + lane / 4 + i / 2 * 8;
        const bool masked = diagonal && key > tile * kTile + column;
        scores[n][i] =
            masked
                ? 0.0f
                : exp2_fast(fmaf(scores[n][i], scale_log2, -lses[at + column]));
      }
    }
    multiply_by_columns<D, kTile>(dv, scores, dout_tiles + at * D);
    multiply_by_rows<D, kTile>(dp, dout_tiles + at * D, v_rows);
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = 8 * n + lane % 4 * 2 + i % 2;
        dp[n][i] = scores[n][i] * (dp[n][i] - deltas[at + column]);
      }
    }
    multiply_by_columns<D, kTile>(dk, dp, q_tiles + at * D);
    __syncthreads();  // before the next copy overwrites this stage
  }
  store_rows<D>(p.dqkv + layout.qkv_start(head, 1), stride,
                first_key + warp_row, sequence, k_tile, warp_row, dk, scale,
                scale);
  store_rows<D>(p.dqkv + layout.qkv_start(head, 2), stride,
                first_key + warp_row, sequence, v_tile, warp_row, dv, 1.0f,
                1.0f);
}

}  // namespace

void flash_attention_backward(Context& context, const AttentionBackward& args) {
  const AttentionShape& shape = args.shape;
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_size));
  const Pointers pointers{args.dqkv.as<bf16>(),
                          args.dout.as<const bf16>(),
                          args.out.as<const bf16>(),
                          args.qkv.as<const bf16>(),
                          args.lse.as<const float>(),
                          context.scratch.get<float>(static_cast<std::size_t>(
                              shape.batch * shape.heads * shape.sequence))};
  const HeadLayout layout = head_layout(shape);
  with_head_size(shape.head_size, [&]<int D>() {
    // In this order: the first leaves delta for the second.
    launch_flash(context, query_kernel<D>, shape, kQueryShared<D>, pointers,
                 layout, scale);
    launch_flash(context, key_kernel<D>, shape, kKeyShared<D>, pointers, layout,
                 scale);
  });
}

}  // namespace gpt::cuda
