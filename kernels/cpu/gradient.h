/// \file
/// The gradient of one tile as the sum of its sources.
#pragma once

#include "kernels/cpu/tiles.h"
#include "kernels/peer_list.h"

namespace ddp::cpu {

inline const void* element(const void* data, DType dtype,
                           std::int64_t index) noexcept {
  return static_cast<const char*>(data) +
         static_cast<std::size_t>(index) * size_of(dtype);
}

inline void* element(void* data, DType dtype, std::int64_t index) noexcept {
  return static_cast<char*>(data) +
         static_cast<std::size_t>(index) * size_of(dtype);
}

template <typename S>
constexpr DType dtype_of() noexcept {
  return sizeof(S) == sizeof(float) ? DType::kFloat32 : DType::kFloat64;
}

/// Elements [begin, begin + n) of the sources of `dtype`, added in list order
/// in S: in `buffer`, or the source itself where no arithmetic is needed.
template <typename S>
const S* summed(const PeerList& sources, DType dtype, std::int64_t begin,
                std::int64_t n, S* buffer) {
  const Tiles<S>& t = tiles<S>();
  const int d = index_of(dtype);
  const void* first = element(sources.data[0], dtype, begin);
  if (sources.count == 1 && dtype == dtype_of<S>())
    return static_cast<const S*>(first);
  t.widen[d](buffer, first, n);
  for (int i = 1; i < sources.count; ++i)
    t.add[d](buffer, element(sources.data[i], dtype, begin), n);
  return buffer;
}

}  // namespace ddp::cpu
