#include <cmath>

#include "examples/gpt/ops/cuda/attention_flash.cuh"

namespace gpt::cuda {
namespace {

constexpr int kKeys = 64;  // of a tile
constexpr int kMaxGridY = 65535;
/// Of the hungriest kernel: dq with heads of 128.
constexpr int kFlashSharedBytes = 99 * 1024;

/// Shared memory: q | k, two stages | v, two stages.
template <int D>
constexpr int kSharedBytes = (kFlashRows + 4 * kKeys) * D * 2;

/// The running softmax of a warp's 16 rows (two halves a thread).
template <int D>
struct Accumulator {
  float out[D / 8][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY};
  float sum[2] = {};

  /// Turns scores into exp2(scores * scale - new maximum) and rescales what
  /// was summed before to the new maximum.
  __device__ void absorb(float (&scores)[kKeys / 8][4], float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = maximum[half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
        largest =
            fmaxf(largest, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      largest = quad_max(largest);
      const float keep = exp2_fast((maximum[half] - largest) * scale_log2);
      maximum[half] = largest;
      const float shift = largest * scale_log2;
      float total = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = exp2_fast(fmaf(scores[n][i], scale_log2, -shift));
          total += scores[n][i];
        }
      }
      sum[half] = sum[half] * keep + total;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        out[n][2 * half] *= keep;
        out[n][2 * half + 1] *= keep;
      }
    }
  }
};

template <int D>
__global__ void __launch_bounds__(kFlashThreads)
    forward_kernel(bf16* out, float* lse, const bf16* qkv, HeadLayout layout,
                   float scale) {
  extern __shared__ __align__(128) unsigned char memory[];
  bf16* const q_tile = reinterpret_cast<bf16*>(memory);
  bf16* const k_tiles = q_tile + kFlashRows * D;
  bf16* const v_tiles = k_tiles + 2 * kKeys * D;
  // The last queries see the most keys: their blocks start first.
  const int tile = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  const int sequence = layout.sequence;
  const std::int64_t stride = layout.qkv_stride();
  const bf16* const q = qkv + layout.qkv_start(head, 0);
  const bf16* const k = qkv + layout.qkv_start(head, 1);
  const bf16* const v = qkv + layout.qkv_start(head, 2);
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
  copy_tile<D, kFlashRows, kFlashThreads>(q_tile, q, stride, tile * kFlashRows,
                                          sequence);
  copy_keys(0);

  RowFragments<D, true> q_rows;
  Accumulator<D> sums;
  const float scale_log2 = scale * kLog2E;
  for (int key_tile = 0; key_tile <= tile; ++key_tile) {
    if (key_tile < tile) {
      copy_keys(key_tile + 1);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();
    if (key_tile == 0) q_rows.init(q_tile, warp_row);
    const int at = key_tile % 2 * kKeys * D;
    float scores[kKeys / 8][4] = {};
    multiply_by_rows<D, kKeys>(scores, k_tiles + at, q_rows);
    if (key_tile == tile) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int query = warp_row + lane / 4 + i / 2 * 8;
          const int key = 8 * n + lane % 4 * 2 + i % 2;
          if (key > query) scores[n][i] = -INFINITY;
        }
    }
    sums.absorb(scores, scale_log2);
    multiply_by_columns<D, kKeys>(sums.out, scores, v_tiles + at);
    __syncthreads();  // before the next copy overwrites this stage
  }

  const float total[2] = {quad_sum(sums.sum[0]), quad_sum(sums.sum[1])};
  const int first = tile * kFlashRows + warp_row;
  store_rows<D>(out + layout.out_start(head), layout.out_stride(), first,
                sequence, q_tile, warp_row, sums.out, 1.0f / total[0],
                1.0f / total[1]);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = first + lane / 4 + half * 8;
    if (lane % 4 == 0 && query < sequence)
      lse[static_cast<std::int64_t>(head) * sequence + query] =
          sums.maximum[half] * scale + logf(total[half]);
  }
}

}  // namespace

bool flash_attention_supports(const Context& context,
                              const AttentionShape& shape, ddp::DType dtype,
                              std::initializer_list<const void*> memory) {
  const bool size =
      shape.head_size == 32 || shape.head_size == 64 || shape.head_size == 128;
  return dtype == ddp::DType::kBFloat16 && size &&
         shape.batch * shape.heads <= kMaxGridY &&
         allows_wide<bf16>(shape.head_size, memory) &&
         context.shared_bytes >= kFlashSharedBytes;
}

void flash_attention_forward(const Context& context,
                             const AttentionForward& args) {
  const float scale =
      1.0f / std::sqrt(static_cast<float>(args.shape.head_size));
  with_head_size(args.shape.head_size, [&]<int D>() {
    launch_flash(context, forward_kernel<D>, args.shape, kSharedBytes<D>,
                 args.out.as<bf16>(), args.lse.as<float>(),
                 args.qkv.as<const bf16>(), head_layout(args.shape), scale);
  });
}

}  // namespace gpt::cuda
