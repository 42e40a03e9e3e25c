/// \file
/// Lists of tensors in one launch: their addresses travel as an argument.
#pragma once

#include <span>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"

namespace ddp::cuda {

/// Tensors of one launch; the list then fits into the 4 KiB of arguments that
/// all drivers take.
inline constexpr int kListed = 112;
/// Elements of one piece of work.
inline constexpr std::int32_t kPieceElements = 16384;

struct TensorList {
  void* to[kListed];
  const void* from[kListed];
  std::int64_t numel[kListed];
  /// Pieces of all tensors up to and including this one.
  std::int32_t pieces[kListed];
  /// Elements before a vector is aligned in both; -1: never.
  std::int8_t head[kListed];
  std::int32_t count = 0;

  std::int64_t total() const { return count > 0 ? pieces[count - 1] : 0; }
};
static_assert(sizeof(TensorList) <= 3900);

/// Elements before `pointer` is aligned for `vector` bytes; -1: never.
inline int head_of(const void* pointer, std::size_t element,
                   std::size_t vector) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(pointer) % vector;
  if (past % element != 0) return -1;
  return static_cast<int>((vector - past) % vector / element);
}

/// The same for two streams of one tensor, walked four elements at a time.
inline int common_head(const void* a, std::size_t a_element, const void* b,
                       std::size_t b_element) {
  const auto bytes = [](std::size_t element) {
    return std::min<std::size_t>(16, element * kVectorElements);
  };
  const int first = head_of(a, a_element, bytes(a_element));
  const int second = head_of(b, b_element, bytes(b_element));
  // Four fp64 are two loads, aligned every two elements.
  const int first_period = a_element == 8 ? 2 : 4;
  const int second_period = b_element == 8 ? 2 : 4;
  const int shorter = std::min(first_period, second_period);
  if (first < 0 || second < 0 || first % shorter != second % shorter) return -1;
  return first_period >= second_period ? first : second;
}

/// Appends a tensor; false if the list has no room for it.
inline bool append(TensorList& list, void* to, const void* from,
                   std::int64_t numel, int head) {
  const std::int64_t pieces = (numel + kPieceElements - 1) / kPieceElements;
  const std::int64_t total = list.total() + pieces;
  if (list.count == kListed || total > INT32_MAX) return false;
  list.to[list.count] = to;
  list.from[list.count] = from;
  list.numel[list.count] = numel;
  list.pieces[list.count] = static_cast<std::int32_t>(total);
  list.head[list.count] = static_cast<std::int8_t>(head);
  ++list.count;
  return true;
}

/// The tensor that `piece` belongs to.
__device__ inline int tensor_of(const TensorList& list, std::int32_t piece) {
  int low = 0;
  int high = list.count - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (list.pieces[middle] > piece) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// Calls op(Count<n>{}, to, from, index) for all elements of all tensors.
template <typename T, typename F, typename Op>
__global__ void __launch_bounds__(kThreads)
    list_kernel(const __grid_constant__ TensorList list, const Op op) {
  const std::int32_t total = list.pieces[list.count - 1];
  for (std::int64_t piece = blockIdx.x; piece < total; piece += gridDim.x) {
    const int t = tensor_of(list, static_cast<std::int32_t>(piece));
    const std::int64_t begin =
        (piece - (t > 0 ? list.pieces[t - 1] : 0)) * kPieceElements;
    T* to = static_cast<T*>(list.to[t]) + begin;
    const F* from = static_cast<const F*>(list.from[t]) + begin;
    const std::int64_t rest = list.numel[t] - begin;
    const std::int32_t count = rest < kPieceElements
                                   ? static_cast<std::int32_t>(rest)
                                   : kPieceElements;
    const std::int32_t head =
        list.head[t] < 0 || list.head[t] > count ? count : list.head[t];
    const std::int32_t vectors =
        (count - head) / kVectorElements * kVectorElements;
#pragma unroll 4
    for (std::int32_t i = threadIdx.x * kVectorElements; i < vectors;
         i += kThreads * kVectorElements)
      op(Count<kVectorElements>{}, to + head + i, from + head + i);
    for_edges(head, count,
              [&](auto one, std::int32_t i) { op(one, to + i, from + i); });
  }
}

template <typename T, typename F, typename Op>
void launch_list(const TensorList& list, const Op& op, StreamView stream) {
  if (list.total() == 0) return;
  static Residency residency;
  auto* kernel = &list_kernel<T, F, Op>;
  const unsigned grid =
      grid_of(list.total(), residency.blocks(kernel, stream.device));
  kernel<<<grid, kThreads, 0, handle(stream)>>>(list, op);
  DDP_CUDA_LAUNCHED();
}

}  // namespace ddp::cuda
