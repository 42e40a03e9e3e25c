/// \file
/// UpdateCase: one run of an update with its memory, its old values, and what
/// plain double arithmetic says the new ones are.
#pragma once

#include <string>
#include <vector>

#include "kernels/update.h"
#include "tests/unit/kernels/array.h"

namespace ddp::test {

struct Shape {
  DType weight = DType::kFloat32;
  DType gradient = DType::kFloat32;
  bool master = false;
  int sources = 1;
  int destinations = 1;
  std::int64_t numel = 0;
  std::int64_t offset = 0;
  std::int32_t group = 0;
  std::int32_t clock = -1;
  unsigned seed = 1;
};

std::string describe(const Shape& shape);

class UpdateCase {
 public:
  explicit UpdateCase(const Shape& shape, Machine& where = machine());

  UpdateRun run() const;
  /// Judges what adam() left; `time` is the update's number, from 1.
  void expect_adam(const AdamStep& step, std::int64_t time,
                   double gradient_scale) const;
  void expect_sgd(const SgdStep& step, std::int64_t time,
                  double gradient_scale) const;
  void expect_untouched() const;
  /// All bytes of weights and state.
  std::vector<std::vector<unsigned char>> bytes() const;

 private:
  DType state_type() const;
  std::vector<double> summed_gradient() const;
  void expect_weight(std::size_t i, double expected, double tolerance,
                     const std::vector<double>& masters,
                     const std::vector<std::vector<double>>& results) const;
  std::vector<std::vector<double>> weights() const;

  Shape shape_;
  std::vector<Array> gradients_;
  std::vector<Array> weights_;
  std::vector<Array> master_;  ///< one or none
  std::vector<Array> moments_;
  std::vector<double> old_weight_;
  std::vector<double> old_moment1_;
  std::vector<double> old_moment2_;
  std::vector<std::vector<unsigned char>> old_bytes_;
};

}  // namespace ddp::test
