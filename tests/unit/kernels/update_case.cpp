#include "tests/unit/kernels/update_case.h"

#include <cmath>

namespace ddp::test {
namespace {

/// The decimal that a test wrote as a float literal.
double written(float value) { return std::stod(concat(value)); }

double epsilon(DType state) {
  return state == DType::kFloat64 ? 0x1p-52 : 0x1p-23;
}

}  // namespace

std::string describe(const Shape& s) {
  return concat(name(s.weight), " weights, ", name(s.gradient), " gradients",
                s.master ? ", master" : "", ", ", s.sources, " sources, ",
                s.destinations, " destinations, ", s.numel, " at ", s.offset);
}

UpdateCase::UpdateCase(const Shape& shape, Machine& where) : shape_(shape) {
  const std::int64_t n = shape.numel;
  for (int i = 0; i < shape.sources; ++i)
    gradients_.emplace_back(
        shape.gradient,
        random_values(shape.gradient, n,
                      shape.seed * 100 + static_cast<unsigned>(i)),
        shape.offset, where);
  old_weight_ = random_values(shape.master ? state_type() : shape.weight, n,
                              shape.seed * 100 + 50);
  for (int i = 0; i < shape.destinations; ++i)
    weights_.emplace_back(
        shape.weight,
        i == 0 ? old_weight_ : std::vector<double>(old_weight_.size()),
        shape.offset, where);
  if (shape.master)
    master_.emplace_back(state_type(), old_weight_, shape.offset, where);
  old_moment1_ = random_values(state_type(), n, shape.seed * 100 + 51);
  old_moment2_ = random_values(state_type(), n, shape.seed * 100 + 52);
  for (double& v : old_moment2_) v = std::fabs(v);
  moments_.emplace_back(state_type(), old_moment1_, shape.offset, where);
  moments_.emplace_back(state_type(), old_moment2_, shape.offset, where);
  old_bytes_ = bytes();
}

DType UpdateCase::state_type() const {
  return shape_.weight == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

UpdateRun UpdateCase::run() const {
  UpdateRun run;
  for (const Array& array : weights_)
    run.weight.data[run.weight.count++] = array.data();
  for (const Array& array : gradients_)
    run.gradient.data[run.gradient.count++] = array.data();
  run.master = shape_.master ? master_.front().data() : nullptr;
  run.moment1 = moments_[0].data();
  run.moment2 = moments_[1].data();
  run.numel = shape_.numel;
  run.group = shape_.group;
  run.clock = shape_.clock;
  return run;
}

std::vector<double> UpdateCase::summed_gradient() const {
  const DType wide =
      shape_.gradient == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  std::vector<double> sum = gradients_.front().values();
  for (std::size_t s = 1; s < gradients_.size(); ++s) {
    const std::vector<double> more = gradients_[s].values();
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] = round_to(wide, sum[i] + more[i]);
  }
  return sum;
}

std::vector<std::vector<double>> UpdateCase::weights() const {
  std::vector<std::vector<double>> result;
  for (const Array& array : weights_) result.push_back(array.values());
  return result;
}

void UpdateCase::expect_weight(
    std::size_t i, double expected, double tolerance,
    const std::vector<double>& masters,
    const std::vector<std::vector<double>>& results) const {
  double reach = tolerance;
  if (shape_.master) {
    ASSERT_NEAR(masters[i], expected, tolerance) << "master " << i;
    ASSERT_EQ(results[0][i], round_to(shape_.weight, masters[i])) << i;
  } else {
    reach += spacing(shape_.weight, expected) / 2;
    ASSERT_NEAR(results[0][i], expected, reach) << "weight " << i;
  }
  for (const std::vector<double>& copy : results)
    ASSERT_EQ(copy[i], results[0][i]) << "copies of weight " << i;
}

void UpdateCase::expect_adam(const AdamStep& step, std::int64_t time,
                             double gradient_scale) const {
  SCOPED_TRACE(describe(shape_));
  const double lr = written(step.lr), eps = written(step.eps);
  const double b1 = written(step.beta1), b2 = written(step.beta2);
  const double decay = written(step.weight_decay);
  const double t = static_cast<double>(time);
  const double unit = epsilon(state_type());
  const std::vector<double> gradient = summed_gradient();
  const std::vector<double> m1 = moments_[0].values();
  const std::vector<double> m2 = moments_[1].values();
  const std::vector<double> masters =
      shape_.master ? master_[0].values() : std::vector<double>();
  const auto results = weights();
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double w0 = old_weight_[i];
    double g = gradient[i] * gradient_scale;
    const double size_of_g = std::fabs(g) + decay * std::fabs(w0);
    if (!step.decoupled) g += decay * w0;
    const double m = b1 * old_moment1_[i] + (1 - b1) * g;
    const double v = b2 * old_moment2_[i] + (1 - b2) * g * g;
    const double denominator = std::sqrt(v / (1 - std::pow(b2, t))) + eps;
    const double rate = lr / (1 - std::pow(b1, t));
    const double w =
        (step.decoupled ? w0 * (1 - lr * decay) : w0) - rate * m / denominator;
    const double size_of_m = std::fabs(old_moment1_[i]) + size_of_g;
    ASSERT_NEAR(m1[i], m, 4 * unit * size_of_m) << "moment1 " << i;
    ASSERT_NEAR(m2[i], v, 4 * unit * (old_moment2_[i] + size_of_g * size_of_g))
        << "moment2 " << i;
    expect_weight(i, w,
                  8 * unit * (std::fabs(w0) + rate * size_of_m / denominator),
                  masters, results);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void UpdateCase::expect_sgd(const SgdStep& step, std::int64_t time,
                            double gradient_scale) const {
  SCOPED_TRACE(describe(shape_));
  const double lr = written(step.lr), momentum = written(step.momentum);
  const double decay = written(step.weight_decay);
  const double dampening = written(step.dampening);
  const double unit = epsilon(state_type());
  const std::vector<double> gradient = summed_gradient();
  const std::vector<double> buffer = moments_[0].values();
  const std::vector<double> masters =
      shape_.master ? master_[0].values() : std::vector<double>();
  const auto results = weights();
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double w0 = old_weight_[i];
    const double g = gradient[i] * gradient_scale + decay * w0;
    double b = old_moment1_[i];
    double direction = g;
    if (momentum != 0) {
      b = time == 1 ? g : momentum * b + (1 - dampening) * g;
      direction = step.nesterov ? g + momentum * b : b;
    }
    const double size = 3 * (std::fabs(gradient[i]) + std::fabs(w0) +
                             std::fabs(old_moment1_[i]));
    ASSERT_NEAR(buffer[i], b, momentum == 0 ? 0 : 4 * unit * size) << i;
    expect_weight(i, w0 - lr * direction,
                  8 * unit * (std::fabs(w0) + lr * size), masters, results);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

std::vector<std::vector<unsigned char>> UpdateCase::bytes() const {
  std::vector<std::vector<unsigned char>> all;
  for (const auto* arrays : {&weights_, &master_, &moments_})
    for (const Array& array : *arrays) all.push_back(array.bytes());
  return all;
}

void UpdateCase::expect_untouched() const {
  EXPECT_EQ(bytes(), old_bytes_) << describe(shape_);
}

}  // namespace ddp::test
