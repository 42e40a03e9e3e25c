/// \file
/// How layer norm walks memory: a row is held in the registers of a group of
/// 1, 2, 4 or 8 warps, up to four packs in each thread.
///
///     lane of the group   0    1   ...  32G-1 |  0   ...
///     elements of a row   V    V   ...   V    |  V   ...   (N times)
#pragma once

#include "examples/gpt/ops/cuda/dispatch.cuh"

namespace gpt::cuda {

inline constexpr int kRowThreads = 256;
inline constexpr int kMaxPacks = 4;

/// Calls body.operator()<N, G>() with the fewest warps G whose threads hold
/// a row of `packs` packs in at most four each.
template <typename Body>
void with_row_shape(std::int64_t packs, std::int64_t width, const Body& body) {
  int warps = 1;
  while (warps < 8 && packs > 32 * kMaxPacks * warps) warps *= 2;
  const std::int64_t each = ceil_div(packs, 32 * warps);
  DDP_EXPECT(each <= kMaxPacks, InvalidArgument, "layer norm over rows of ",
             width, " elements, but a block holds ",
             width / packs * 32 * kMaxPacks * 8,
             "; use fewer, or a multiple of 8 in memory that is aligned to 16 "
             "bytes");
  const auto with_warps = [&]<int N>() {
    switch (warps) {
      case 1: return body.template operator()<N, 1>();
      case 2: return body.template operator()<N, 2>();
      case 4: return body.template operator()<N, 4>();
      default: return body.template operator()<N, 8>();
    }
  };
  // Two warps or more are chosen only where half as many would overflow, so
  // one or two packs each occur with one warp alone.
  switch (each) {
    case 0:
    case 1: return body.template operator()<1, 1>();
    case 2: return body.template operator()<2, 1>();
    case 3: return with_warps.template operator()<3>();
    default: return with_warps.template operator()<4>();
  }
}

/// The place of a thread in its group, and the rows that a block takes in
/// one round.
template <int V, int N, int G>
struct RowGroup {
  static constexpr int kGroups = kRowThreads / 32 / G;
  static constexpr int kRegisters = N * V;

  int group = static_cast<int>(threadIdx.x) / (32 * G);
  int lane = static_cast<int>(threadIdx.x) % (32 * G);

  /// First element of the thread's pack n.
  __device__ int column(int n) const { return (n * 32 * G + lane) * V; }
};

}  // namespace gpt::cuda
