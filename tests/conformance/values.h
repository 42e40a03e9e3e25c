/// \file
/// Values whose sums are exact in every type, and memory to hold them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/ranks.h"

namespace ddp::conformance {

inline constexpr DType kDTypes[] = {
    DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16,
    DType::kInt8,    DType::kUInt8,   DType::kInt32,    DType::kUInt32,
    DType::kInt64,   DType::kUInt64};

inline constexpr ReduceOp kReduceOps[] = {ReduceOp::kSum, ReduceOp::kMax,
                                          ReduceOp::kMin, ReduceOp::kAverage};

/// Element `i` of what rank `rank` brings: a whole number of 0..6, so that
/// sums over up to 36 ranks are exact in bf16, and differs by rank.
inline int value_of(int rank, std::int64_t i) {
  return static_cast<int>((i * 5 + rank * 3 + i / 7) % 7);
}

/// value_of() and everything made of it repeat after this many elements.
inline constexpr std::int64_t kPeriod = 49;

/// One period of a function of the element, so that checking a million
/// elements costs a look-up each.
class Periodic {
 public:
  template <typename F>
  explicit Periodic(const F& f) {
    for (std::int64_t i = 0; i < kPeriod; ++i)
      values_.push_back(static_cast<double>(f(i)));
  }
  double operator()(std::int64_t i) const { return values_[i % kPeriod]; }

 private:
  std::vector<double> values_;
};

/// `numel` elements of one rank's memory.
class Array {
 public:
  Array(const Rank& rank, std::int64_t numel, DType dtype)
      : rank_(&rank),
        buffer_(
            Buffer::allocate(static_cast<std::size_t>(numel) * size_of(dtype),
                             rank.communicator.device())),
        view_(buffer_.view(0, numel, dtype)) {}

  TensorView view() const { return view_; }
  /// Writes value(i) to every element.
  void fill(const std::function<double(std::int64_t)>& value);
  /// Elements that differ from expected(i), with the first in `text`.
  std::int64_t differences(const std::function<double(std::int64_t)>& expected,
                           std::string* text) const;

 private:
  const Rank* rank_;
  Buffer buffer_;
  TensorView view_;
};

/// What reducing value_of() over ranks 0..size-1 must give, in `dtype`'s
/// accumulation type, before rounding to `dtype`.
double reduced_value(ReduceOp op, DType dtype, int size, std::int64_t i);

/// Whether a backend must accept the pair.
inline bool is_defined(ReduceOp op, DType dtype) {
  return op != ReduceOp::kAverage || is_floating(dtype);
}

}  // namespace ddp::conformance
