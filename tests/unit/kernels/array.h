/// \file
/// Array: elements of any floating type in the machine's memory, between
/// guard bytes, seen as doubles.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/core/tensor.h"
#include "tests/unit/kernels/machine.h"
#include "tests/unit/kernels/number_reference.h"

namespace ddp::test {

class Array {
 public:
  /// `offset` elements lie between an aligned address and element 0.
  Array(DType dtype, const std::vector<double>& values, std::int64_t offset = 0,
        Machine& where = machine())
      : where_(&where),
        dtype_(dtype),
        numel_(static_cast<std::int64_t>(values.size())),
        offset_(offset),
        memory_(where.allocate(size())) {
    std::vector<unsigned char> bytes(size(), kGuard);
    for (std::int64_t i = 0; i < numel_; ++i)
      encode(dtype, bytes.data(), offset + i,
             values[static_cast<std::size_t>(i)]);
    where.write(memory_.get(), bytes.data(), bytes.size());
  }

  void* data() const {
    return static_cast<char*>(memory_.get()) +
           static_cast<std::size_t>(offset_) * size_of(dtype_);
  }
  TensorView view() const {
    return {data(), numel_, dtype_, where_->stream().device};
  }
  /// All bytes, guards included.
  std::vector<unsigned char> bytes() const {
    std::vector<unsigned char> result(size());
    where_->read(result.data(), memory_.get(), result.size());
    return result;
  }
  /// The elements; fails the test if a guard byte has changed.
  std::vector<double> values() const {
    const std::vector<unsigned char> all = bytes();
    const std::size_t begin =
        static_cast<std::size_t>(offset_) * size_of(dtype_);
    const std::size_t end =
        begin + static_cast<std::size_t>(numel_) * size_of(dtype_);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i < begin || i >= end) {
        EXPECT_EQ(all[i], kGuard) << "guard byte " << i;
        if (all[i] != kGuard) break;
      }
    std::vector<double> result;
    for (std::int64_t i = 0; i < numel_; ++i)
      result.push_back(decode(dtype_, all.data(), offset_ + i));
    return result;
  }
  DType dtype() const { return dtype_; }

 private:
  static constexpr unsigned char kGuard = 0xa5;
  std::size_t size() const {
    return static_cast<std::size_t>(offset_ + numel_ + 8) * size_of(dtype_);
  }

  Machine* where_;
  DType dtype_;
  std::int64_t numel_;
  std::int64_t offset_;
  std::shared_ptr<void> memory_;
};

inline constexpr DType kFloatingTypes[] = {DType::kFloat32, DType::kFloat64,
                                           DType::kBFloat16, DType::kFloat16};

/// Values of `dtype` with magnitudes between `least` and `most`.
inline std::vector<double> random_values(DType dtype, std::int64_t n,
                                         unsigned seed, double least = 1e-3,
                                         double most = 4) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> exponent(std::log(least),
                                                  std::log(most));
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    const double magnitude = std::exp(exponent(engine));
    values.push_back(round_to(dtype, engine() & 1u ? magnitude : -magnitude));
  }
  return values;
}

}  // namespace ddp::test
