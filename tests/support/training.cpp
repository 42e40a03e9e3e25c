#include "tests/support/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/core/half.h"

namespace ddp::test {
namespace {

double load(TensorView tensor, std::int64_t i) {
  switch (tensor.dtype) {
    case DType::kFloat64: return tensor.as<double>()[i];
    case DType::kBFloat16: return to_float(tensor.as<bfloat16>()[i]);
    case DType::kFloat16: return to_float(tensor.as<float16>()[i]);
    default: return tensor.as<float>()[i];
  }
}

void store(TensorView tensor, std::int64_t i, double value) {
  const auto narrow = static_cast<float>(value);
  switch (tensor.dtype) {
    case DType::kFloat64: tensor.as<double>()[i] = value; break;
    case DType::kBFloat16:
      tensor.as<bfloat16>()[i] = to_bfloat16(narrow);
      break;
    case DType::kFloat16: tensor.as<float16>()[i] = to_float16(narrow); break;
    default: tensor.as<float>()[i] = narrow;
  }
}

}  // namespace

std::vector<ParameterSpec> scalars(const std::vector<std::string>& names) {
  std::vector<ParameterSpec> specs;
  for (const std::string& name : names) specs.push_back({.name = name});
  return specs;
}

void fill_ones(DataParallel& dp) {
  dp.initialize([](int, std::span<float> values) {
    std::fill(values.begin(), values.end(), 1.0f);
  });
}

void write_gradient(DataParallel& dp, int parameter,
                    const std::vector<double>& values) {
  const GradientTarget target = dp.grad(parameter, StreamView::cpu());
  ASSERT_EQ(target.tensor.numel, static_cast<std::int64_t>(values.size()));
  for (std::int64_t i = 0; i < target.tensor.numel; ++i)
    store(target.tensor, i,
          values[i] + (target.accumulate ? load(target.tensor, i) : 0.0));
}

void give(DataParallel& dp, int parameter, const std::vector<double>& values) {
  write_gradient(dp, parameter, values);
  dp.grad_ready(parameter, StreamView::cpu());
}

std::vector<double> values_of(TensorView tensor) {
  std::vector<double> values(tensor.numel);
  for (std::int64_t i = 0; i < tensor.numel; ++i) values[i] = load(tensor, i);
  return values;
}

ReferenceParameter::ReferenceParameter(std::vector<double> initial)
    : weight(std::move(initial)),
      moment1(weight.size(), 0.0),
      moment2(weight.size(), 0.0) {}

void ReferenceParameter::update(const OptimizerConfig& config,
                                const std::vector<double>& gradient,
                                double lr_factor) {
  ++time;
  const auto adam = [&](const auto& c, bool decoupled) {
    const double lr = c.lr * lr_factor;
    for (std::size_t i = 0; i < weight.size(); ++i) {
      double g = gradient[i];
      if (decoupled)
        weight[i] *= 1 - lr * c.weight_decay;
      else
        g += c.weight_decay * weight[i];
      moment1[i] = c.beta1 * moment1[i] + (1 - double{c.beta1}) * g;
      moment2[i] = c.beta2 * moment2[i] + (1 - double{c.beta2}) * g * g;
      const double m = moment1[i] / (1 - std::pow(c.beta1, time));
      const double v = moment2[i] / (1 - std::pow(c.beta2, time));
      weight[i] -= lr * m / (std::sqrt(v) + c.eps);
    }
  };
  if (const auto* w = std::get_if<AdamW>(&config)) return adam(*w, true);
  if (const auto* a = std::get_if<Adam>(&config)) return adam(*a, false);
  const Sgd& c = std::get<Sgd>(config);
  for (std::size_t i = 0; i < weight.size(); ++i) {
    double g = gradient[i] + c.weight_decay * weight[i];
    if (c.momentum != 0) {
      moment1[i] =
          time == 1 ? g : c.momentum * moment1[i] + (1 - c.dampening) * g;
      g = c.nesterov ? g + c.momentum * moment1[i] : moment1[i];
    }
    weight[i] -= c.lr * lr_factor * g;
  }
}

}  // namespace ddp::test
