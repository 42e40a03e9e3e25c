// Least squares, trained by all ranks together: the smallest program that
// uses an installed libddp.
//
// Each rank holds other samples of y = 2 a - 3 b + 1. The model is
// w . (a, b, 1); its gradient is worked out by hand below.
#include <array>
#include <cstdio>
#include <exception>
#include <span>

#include "libddp/engine/data_parallel.h"

namespace {

constexpr int kSteps = 200;
constexpr int kSamples = 16;
constexpr std::array<float, 3> kTruth = {2.0f, -3.0f, 1.0f};

/// Features of sample `i` of rank `rank`: any numbers will do that differ.
std::array<float, 3> features(int rank, int i) {
  const int k = rank * kSamples + i;
  return {static_cast<float>(k % 7) / 7 - 0.5f,
          static_cast<float>(k % 11) / 11 - 0.5f, 1.0f};
}

float dot(std::span<const float> a, std::span<const float> b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// Mean squared error over this rank's samples; `gradient` receives its
/// derivative by the weights.
float forward_backward(int rank, std::span<const float> weights,
                       std::span<float> gradient) {
  float loss = 0;
  for (float& g : gradient) g = 0;
  for (int i = 0; i < kSamples; ++i) {
    const auto x = features(rank, i);
    const float error = dot(weights, x) - dot(kTruth, x);
    loss += error * error / kSamples;
    for (int j = 0; j < 3; ++j) gradient[j] += 2 * error * x[j] / kSamples;
  }
  return loss;
}

void train() {
  const ddp::World world = ddp::init({.device = "cpu"});
  const auto stream = ddp::StreamView::cpu();
  ddp::DataParallel dp(
      world, {{.name = "weights", .shape = {3}}},
      {.optimizer = ddp::AdamW{.lr = 0.1f, .weight_decay = 0}});
  dp.initialize([](int, std::span<float> weights) {
    for (float& w : weights) w = 0;
  });

  for (int step = 0; step < kSteps; ++step) {
    const std::span weights(dp.weight(0).as<float>(), 3);
    const std::span gradient(dp.grad(0, stream).tensor.as<float>(), 3);
    const float loss = forward_backward(world.rank(), weights, gradient);
    dp.grad_ready(0, stream);
    dp.step({.loss = loss}, stream);
  }

  for (const ddp::StepReport& report : dp.wait_reports()) {
    if (world.rank() == 0 && (report.step + 1) % 50 == 0) {
      std::printf("step %lld  loss %.6f\n",
                  static_cast<long long>(report.step + 1), report.loss);
    }
  }
  if (world.rank() == 0) {
    const float* w = dp.weight(0).as<float>();
    std::printf("weights %.3f %.3f %.3f\n", w[0], w[1], w[2]);
  }
}

}  // namespace

int main() {
  try {
    train();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
