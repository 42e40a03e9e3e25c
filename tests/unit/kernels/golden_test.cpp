// Linked with the CPU and with the GPU; machine() says which is tested.
#include "tests/unit/kernels/golden.h"

#include <cmath>

#include "kernels/update.h"
#include "tests/unit/kernels/array.h"

namespace ddp::test {
namespace {

std::vector<double> slice(const double* begin) {
  return {begin, begin + kGoldenNumel};
}

void expect_close(const char* what, const std::vector<double>& values,
                  const double* golden, const double* reach, double tolerance) {
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], golden[i], tolerance * reach[i])
        << what << " of element " << i;
}

/// Runs all steps of `golden` with `step(table, control)`.
template <typename Step>
void expect_golden(const GoldenCase& golden, DType dtype, const Step& step) {
  const std::vector<double> zero(kGoldenNumel);
  const Array weight(dtype, slice(kGoldenWeight));
  const Array moment1(dtype, zero);
  const Array moment2(dtype, zero);
  StepControl control;
  for (int t = 0; t < kGoldenSteps; ++t) {
    const Array gradient(dtype, slice(kGoldenGradients + t * kGoldenNumel));
    UpdateRun run;
    run.weight = PeerList::one(weight.data());
    run.gradient = PeerList::one(gradient.data());
    run.moment1 = moment1.data();
    run.moment2 = moment2.data();
    run.numel = kGoldenNumel;
    const UpdateTable table({run}, dtype, dtype, machine().stream().device);
    control.time = t + 1;
    const Value<StepControl> device_control(control);
    step(table, device_control.get());
    machine().read(&control, device_control.get(), sizeof control);
  }
  const bool wide = dtype == DType::kFloat64;
  const GoldenState& state = wide ? golden.wide : golden.single;
  // 20 steps in another order of roundings than torch's.
  const double tolerance = wide ? 1e-13 : 1e-6;
  expect_close("weight", weight.values(), state.weight, state.weight_reach,
               tolerance);
  expect_close("moment1", moment1.values(), state.moment1, state.moment1_reach,
               tolerance);
  expect_close("moment2", moment2.values(), state.moment2, state.moment2,
               tolerance);
}

class GoldenSmall : public ::testing::TestWithParam<DType> {};

TEST_P(GoldenSmall, AdamAndAdamWEndWhereTorchEnds) {
  for (const GoldenCase& golden : kGoldenAdam) {
    SCOPED_TRACE(&golden - kGoldenAdam);
    const AdamStep step{.lr = golden.lr,
                        .beta1 = golden.beta1,
                        .beta2 = golden.beta2,
                        .eps = golden.eps,
                        .weight_decay = golden.weight_decay,
                        .decoupled = golden.decoupled};
    expect_golden(golden, GetParam(),
                  [&](const UpdateTable& table, const StepControl* control) {
                    adam(table, {&step, 1}, control, {}, machine().stream());
                  });
  }
}

TEST_P(GoldenSmall, SgdEndsWhereTorchEnds) {
  for (const GoldenCase& golden : kGoldenSgd) {
    SCOPED_TRACE(&golden - kGoldenSgd);
    const SgdStep step{.lr = golden.lr,
                       .momentum = golden.momentum,
                       .dampening = golden.dampening,
                       .weight_decay = golden.weight_decay,
                       .nesterov = golden.nesterov};
    expect_golden(golden, GetParam(),
                  [&](const UpdateTable& table, const StepControl* control) {
                    sgd(table, {&step, 1}, control, {}, machine().stream());
                  });
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GoldenSmall,
                         ::testing::Values(DType::kFloat32, DType::kFloat64),
                         [](const auto& one) {
                           return std::string(name(one.param));
                         });

}  // namespace
}  // namespace ddp::test
