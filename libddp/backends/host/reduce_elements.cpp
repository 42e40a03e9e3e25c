#include "libddp/backends/host/reduce_elements.h"

#include <algorithm>
#include <type_traits>

#include "kernels/core/half.h"

namespace ddp {
namespace {

// Elements that are combined at a time: the accumulators stay in the first
// level of cache, and each loop has two streams, which compilers vectorise
// without a check of every pair of pointers for overlap.
constexpr std::int64_t kTile = 1024;

template <typename T>
struct Arithmetic {
  using Accumulator = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};

template <>
struct Arithmetic<bfloat16> {
  using Accumulator = float;
  static float load(bfloat16 value) { return to_float(value); }
  static bfloat16 store(float value) { return to_bfloat16(value); }
};

template <>
struct Arithmetic<float16> {
  using Accumulator = float;
  static float load(float16 value) { return to_float(value); }
  static float16 store(float value) { return to_float16(value); }
};

// Signed sums wrap as unsigned ones do; a plain + would be undefined.
template <typename A>
A add(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

// NaN wins over every number, from whichever rank it comes.
template <typename A>
A larger(A a, A b) {
  return a > b || a != a ? a : b;
}
template <typename A>
A smaller(A a, A b) {
  return a < b || a != a ? a : b;
}

template <typename T, typename Combine>
void combine_tiles(T* destination, std::span<const void* const> sources,
                   std::int64_t numel, int divisor, Combine combine) {
  using A = typename Arithmetic<T>::Accumulator;
  alignas(64) A total[kTile];
  for (std::int64_t begin = 0; begin < numel; begin += kTile) {
    const std::int64_t count = std::min(kTile, numel - begin);
    const T* first = static_cast<const T*>(sources[0]) + begin;
    for (std::int64_t i = 0; i < count; ++i)
      total[i] = Arithmetic<T>::load(first[i]);
    for (const void* source : sources.subspan(1)) {
      const T* next = static_cast<const T*>(source) + begin;
      for (std::int64_t i = 0; i < count; ++i)
        total[i] = combine(total[i], Arithmetic<T>::load(next[i]));
    }
    if (divisor != 1) {
      for (std::int64_t i = 0; i < count; ++i)
        total[i] = static_cast<A>(total[i] / static_cast<A>(divisor));
    }
    for (std::int64_t i = 0; i < count; ++i)
      destination[begin + i] = Arithmetic<T>::store(total[i]);
  }
}

template <typename T>
void reduce_typed(void* destination, std::span<const void* const> sources,
                  std::int64_t numel, ReduceOp op, int divisor) {
  using A = typename Arithmetic<T>::Accumulator;
  T* out = static_cast<T*>(destination);
  switch (op) {
    case ReduceOp::kSum: combine_tiles(out, sources, numel, 1, add<A>); return;
    case ReduceOp::kAverage:
      combine_tiles(out, sources, numel, divisor, add<A>);
      return;
    case ReduceOp::kMax:
      combine_tiles(out, sources, numel, 1, larger<A>);
      return;
    case ReduceOp::kMin:
      combine_tiles(out, sources, numel, 1, smaller<A>);
      return;
  }
}

}  // namespace

void reduce_elements(void* destination, std::span<const void* const> sources,
                     std::int64_t numel, DType dtype, ReduceOp op,
                     int divisor) {
  const auto run = [&]<typename T>(T) {
    reduce_typed<T>(destination, sources, numel, op, divisor);
  };
  switch (dtype) {
    case DType::kFloat32: return run(float{});
    case DType::kFloat64: return run(double{});
    case DType::kBFloat16: return run(bfloat16{});
    case DType::kFloat16: return run(float16{});
    case DType::kInt8: return run(std::int8_t{});
    case DType::kUInt8: return run(std::uint8_t{});
    case DType::kInt32: return run(std::int32_t{});
    case DType::kUInt32: return run(std::uint32_t{});
    case DType::kInt64: return run(std::int64_t{});
    case DType::kUInt64: return run(std::uint64_t{});
  }
}

}  // namespace ddp
