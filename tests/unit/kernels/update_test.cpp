// Linked with the CPU and with the GPU; machine() says which is tested.
#include "kernels/update.h"

#include "tests/unit/kernels/update_case.h"

namespace ddp::test {
namespace {

constexpr AdamStep kAdamW{.lr = 0.01f,
                          .beta1 = 0.9f,
                          .beta2 = 0.95f,
                          .eps = 1e-6f,
                          .weight_decay = 0.1f};
constexpr AdamStep kAdam{.lr = 0.02f,
                         .beta1 = 0.4f,
                         .beta2 = 0.999f,
                         .eps = 1e-8f,
                         .weight_decay = 0.3f,
                         .decoupled = false};
constexpr SgdStep kPlain{.lr = 0.1f, .weight_decay = 0.02f};
constexpr SgdStep kMomentum{
    .lr = 0.1f, .momentum = 0.9f, .dampening = 0.25f, .weight_decay = 0.02f};
constexpr SgdStep kNesterov{.lr = 0.1f, .momentum = 0.8f, .nesterov = true};

StepControl control_at(std::int64_t time, float gradient_scale = 0.375f) {
  StepControl control;
  control.time = time;
  control.gradient_scale = gradient_scale;
  return control;
}

UpdateTable table_of(const UpdateCase& one, const Shape& shape) {
  return UpdateTable({one.run()}, shape.weight, shape.gradient,
                     machine().stream().device);
}

void expect_all_updates(const Shape& shape) {
  const std::int64_t time = 1 + shape.numel % 5;
  const Value<StepControl> control(control_at(time));
  for (const AdamStep& step : {kAdamW, kAdam}) {
    const UpdateCase one(shape);
    adam(table_of(one, shape), {&step, 1}, control.get(), {},
         machine().stream());
    one.expect_adam(step, time, 0.375);
  }
  for (const SgdStep& step : {kPlain, kMomentum, kNesterov}) {
    const UpdateCase one(shape);
    sgd(table_of(one, shape), {&step, 1}, control.get(), {},
        machine().stream());
    one.expect_sgd(step, time, 0.375);
  }
}

TEST(UpdateSmall, AgreesWithDoubleArithmeticForEveryPairOfTypes) {
  for (const DType weight : kFloatingTypes)
    for (const DType gradient : kFloatingTypes)
      for (const bool master : {false, true})
        for (const int sources : {1, 2, 3})
          for (const std::int64_t n : {0, 1, 5, 1031})
            expect_all_updates({.weight = weight,
                                .gradient = gradient,
                                .master = master,
                                .sources = sources,
                                .numel = n,
                                .offset = n % 4});
}

TEST(UpdateSmall, AgreesAtEveryOffsetFromAnAlignedAddress) {
  for (const DType weight : kFloatingTypes)
    for (const DType gradient : kFloatingTypes)
      for (const std::int64_t offset : {0, 1, 2, 3})
        expect_all_updates({.weight = weight,
                            .gradient = gradient,
                            .master = true,
                            .sources = 2,
                            .destinations = 2,
                            .numel = 67,
                            .offset = offset});
}

TEST(UpdateLarge, AgreesWithDoubleArithmeticOverManyChunks) {
  for (const DType weight : kFloatingTypes)
    for (const bool master : {false, true})
      expect_all_updates({.weight = weight,
                          .gradient = DType::kFloat32,
                          .master = master,
                          .sources = 2,
                          .destinations = 2,
                          .numel = 40'003,
                          .offset = 1});
}

TEST(UpdateSmall, WritesTheSameWeightsToEveryPeer) {
  for (const DType weight : kFloatingTypes)
    expect_all_updates({.weight = weight,
                        .sources = kMaxPeers,
                        .destinations = kMaxPeers,
                        .numel = 517});
}

TEST(UpdateSmall, LeavesEveryByteWhenTheDecisionIsNotToApply) {
  StepControl skip = control_at(3);
  skip.apply = 0;
  const Value<StepControl> control(skip);
  for (const DType weight : kFloatingTypes) {
    const Shape shape{.weight = weight,
                      .master = true,
                      .destinations = 2,
                      .numel = 1031,
                      .offset = 1};
    const UpdateCase one(shape);
    const UpdateTable table = table_of(one, shape);
    adam(table, {&kAdamW, 1}, control.get(), {}, machine().stream());
    sgd(table, {&kMomentum, 1}, control.get(), {}, machine().stream());
    one.expect_untouched();
  }
}

// Streams whose addresses never are aligned at the same element.
TEST(UpdateSmall, WalksRunsWhoseStreamsAreAlignedDifferently) {
  const Shape shape{.numel = 1031};
  const UpdateCase a(shape);
  const UpdateCase b({.numel = 1031, .offset = 1});
  UpdateRun run = a.run();
  const UpdateRun other = b.run();
  run.moment1 = other.moment1;
  const UpdateTable table({run}, shape.weight, shape.gradient,
                          machine().stream().device);
  const Value<StepControl> control(control_at(2));
  adam(table, {&kAdamW, 1}, control.get(), {}, machine().stream());
  // The same values lie in both, so `a` without moment1 is as ever.
  const UpdateCase c(shape);
  adam(table_of(c, shape), {&kAdamW, 1}, control.get(), {}, machine().stream());
  EXPECT_EQ(a.bytes()[0], c.bytes()[0]);
  EXPECT_EQ(a.bytes()[2], c.bytes()[2]);
}

AdamStep step_of_group(int group) {
  AdamStep step = kAdamW;
  step.lr = 0.001f * static_cast<float>(group % 7 + 1);
  step.lr = std::stof(concat(step.lr));
  step.weight_decay = group % 2 == 0 ? 0.0f : 0.1f;
  step.decoupled = group % 3 != 0;
  return step;
}

TEST(UpdateSmall, GivesEachOfManyRunsItsOwnGroupAndLength) {
  constexpr int kRuns = 300;
  constexpr int kGroups = 77;
  std::vector<UpdateCase> cases;
  std::vector<UpdateRun> runs;
  for (int i = 0; i < kRuns; ++i) {
    cases.emplace_back(Shape{.weight = DType::kBFloat16,
                             .master = true,
                             .numel = i * 7 % 61,
                             .offset = i % 4,
                             .group = i * 13 % kGroups,
                             .seed = static_cast<unsigned>(i + 1)});
    runs.push_back(cases.back().run());
  }
  std::vector<AdamStep> steps;
  for (int g = 0; g < kGroups; ++g) steps.push_back(step_of_group(g));
  const UpdateTable table(runs, DType::kBFloat16, DType::kFloat32,
                          machine().stream().device);
  const Value<StepControl> control(control_at(4));
  adam(table, steps, control.get(), {}, machine().stream());
  for (int i = 0; i < kRuns; ++i)
    cases[static_cast<std::size_t>(i)].expect_adam(
        steps[static_cast<std::size_t>(i * 13 % kGroups)], 4, 0.375);
}

TEST(UpdateSmall, FollowsEachParametersClock) {
  std::vector<UpdateCase> cases;
  std::vector<UpdateRun> runs;
  for (int i = 0; i < 4; ++i) {
    cases.emplace_back(Shape{
        .numel = 100, .clock = i - 1, .seed = static_cast<unsigned>(i + 1)});
    runs.push_back(cases.back().run());
  }
  const Values<std::int32_t> used({1, 0, 2});
  const Values<std::int64_t> time({0, 5, 7});
  const ParameterClocks clocks{used.get(), time.get(), 3};
  const Value<StepControl> control(control_at(9));
  advance_clocks(control.get(), clocks, machine().stream());
  EXPECT_EQ(time.values(), (std::vector<std::int64_t>{1, 5, 8}));
  const UpdateTable table(runs, DType::kFloat32, DType::kFloat32,
                          machine().stream().device);
  adam(table, {&kAdamW, 1}, control.get(), clocks, machine().stream());
  cases[0].expect_adam(kAdamW, 9, 0.375);
  cases[1].expect_adam(kAdamW, 1, 0.375);
  cases[2].expect_untouched();
  cases[3].expect_adam(kAdamW, 8, 0.375);
}

TEST(UpdateSmall, StopsClocksWhenTheDecisionIsNotToApply) {
  StepControl skip;
  skip.apply = 0;
  const Value<StepControl> control(skip);
  const Values<std::int32_t> used(std::vector<std::int32_t>(700, 1));
  const Values<std::int64_t> time(std::vector<std::int64_t>(700, 2));
  advance_clocks(control.get(), {used.get(), time.get(), 700},
                 machine().stream());
  EXPECT_EQ(time.values(), std::vector<std::int64_t>(700, 2));
}

// The buffer of the first update may hold anything.
TEST(UpdateSmall, IgnoresAMomentumBufferThatWasNeverWritten) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const Array weight(DType::kFloat32, {1.0, 2.0});
  const Array gradient(DType::kFloat32, {0.5, 0.25});
  const Array buffer(DType::kFloat32, {nan, nan});
  UpdateRun run;
  run.weight = PeerList::one(weight.data());
  run.gradient = PeerList::one(gradient.data());
  run.moment1 = buffer.data();
  run.numel = 2;
  const UpdateTable table({run}, DType::kFloat32, DType::kFloat32,
                          machine().stream().device);
  const Value<StepControl> control(control_at(1, 1.0f));
  const SgdStep step{.lr = 0.5f, .momentum = 0.9f};
  sgd(table, {&step, 1}, control.get(), {}, machine().stream());
  EXPECT_EQ(buffer.values(), (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(weight.values(), (std::vector<double>{0.75, 1.875}));
}

TEST(UpdateSmall, RefusesTablesAndCallsThatDoNotFit) {
  const Device device = machine().stream().device;
  const StreamView stream = machine().stream();
  const UpdateCase one({.numel = 4, .group = 1, .clock = 2});
  const auto make = [&](const UpdateRun& run, DType dtype) {
    return UpdateTable({run}, dtype, DType::kFloat32, device);
  };
  UpdateRun bad = one.run();
  bad.gradient.count = 0;
  EXPECT_THROW(make(bad, DType::kFloat32), InvalidArgument);
  bad.gradient.count = kMaxPeers + 1;
  EXPECT_THROW(make(bad, DType::kFloat32), InvalidArgument);
  bad = one.run();
  bad.numel = -1;
  EXPECT_THROW(make(bad, DType::kFloat32), InvalidArgument);
  EXPECT_THROW(make(one.run(), DType::kInt32), InvalidArgument);

  const UpdateTable table = make(one.run(), DType::kFloat32);
  const Value<StepControl> control;
  const std::vector<AdamStep> two(2);
  EXPECT_THROW(adam(table, {two.data(), 1}, control.get(), {}, stream),
               InvalidArgument);
  EXPECT_THROW(adam(table, two, control.get(), {}, stream), InvalidArgument);
  bad = one.run();
  bad.moment2 = nullptr;
  bad.clock = -1;
  EXPECT_THROW(adam(make(bad, DType::kFloat32), two, control.get(), {}, stream),
               InvalidArgument);
  bad.moment1 = nullptr;
  const std::vector<SgdStep> momentum(2, kMomentum);
  EXPECT_THROW(
      sgd(make(bad, DType::kFloat32), momentum, control.get(), {}, stream),
      InvalidArgument);
}

TEST(UpdateSmall, TakesATableWithoutRuns) {
  const UpdateTable table({}, DType::kFloat32, DType::kFloat32,
                          machine().stream().device);
  const Value<StepControl> control;
  adam(table, {}, control.get(), {}, machine().stream());
  sgd(table, {}, control.get(), {}, machine().stream());
  const Value<NormPart> part(NormPart{3, 4});
  norm(table, NormKind::kTwo, 2, part.get(), machine().stream());
  EXPECT_EQ(part.value().value, 0);
  EXPECT_EQ(part.value().first_non_finite, kAllFinite);
}

}  // namespace
}  // namespace ddp::test
