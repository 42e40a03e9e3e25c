// The CPU and the CUDA twin of each kernel give the same bits, since both
// walk the same formulas without fused multiply-adds.
#include <cmath>

#include "kernels/elementwise.h"
#include "tests/unit/kernels/update_case.h"

namespace ddp::test {
namespace {

StepControl third_step() {
  StepControl control;
  control.time = 3;
  control.gradient_scale = 0.37f;
  return control;
}

using Bytes = std::vector<std::vector<unsigned char>>;

Bytes after_adam(const Shape& shape, Machine& where) {
  const UpdateCase one(shape, where);
  const UpdateTable table({one.run()}, shape.weight, shape.gradient,
                          where.stream().device);
  const Value<StepControl> control(third_step(), where);
  const AdamStep step{.weight_decay = 0.1f};
  adam(table, {&step, 1}, control.get(), {}, where.stream());
  return one.bytes();
}

Bytes after_sgd(const Shape& shape, Machine& where) {
  const UpdateCase one(shape, where);
  const UpdateTable table({one.run()}, shape.weight, shape.gradient,
                          where.stream().device);
  const Value<StepControl> control(third_step(), where);
  const SgdStep step{.lr = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f};
  sgd(table, {&step, 1}, control.get(), {}, where.stream());
  return one.bytes();
}

void expect_twins(const Shape& shape) {
  SCOPED_TRACE(describe(shape));
  EXPECT_EQ(after_adam(shape, machine()), after_adam(shape, cpu_machine()));
  EXPECT_EQ(after_sgd(shape, machine()), after_sgd(shape, cpu_machine()));
}

TEST(TwinsSmall, UpdateToTheSameBits) {
  for (const DType weight : kFloatingTypes)
    for (const DType gradient : kFloatingTypes)
      for (const bool master : {false, true})
        expect_twins({.weight = weight,
                      .gradient = gradient,
                      .master = master,
                      .sources = 3,
                      .destinations = 2,
                      .numel = 1031,
                      .offset = 1});
}

TEST(TwinsLarge, UpdateToTheSameBits) {
  for (const DType weight : {DType::kFloat32, DType::kBFloat16})
    expect_twins({.weight = weight,
                  .master = weight != DType::kFloat32,
                  .sources = 2,
                  .numel = 300'007});
}

NormPart norm_on(Machine& where, DType dtype, NormKind kind) {
  const Array gradient(dtype, random_values(dtype, 50'001, 3), 1, where);
  UpdateRun run;
  run.weight = run.gradient = PeerList::one(gradient.data());
  run.numel = 50'001;
  const UpdateTable table({run}, dtype, dtype, where.stream().device);
  const Value<NormPart> part(NormPart{}, where);
  norm(table, kind, 2.5, part.get(), where.stream());
  return part.value();
}

// Sums are in another order, so only nearly equal; maxima are equal.
TEST(TwinsSmall, AgreeOnNorms) {
  for (const DType dtype : kFloatingTypes) {
    for (const NormKind kind :
         {NormKind::kTwo, NormKind::kOne, NormKind::kPower}) {
      const double cpu = norm_on(cpu_machine(), dtype, kind).value;
      EXPECT_NEAR(norm_on(machine(), dtype, kind).value, cpu, 1e-12 * cpu);
    }
    EXPECT_EQ(norm_on(machine(), dtype, NormKind::kInfinity).value,
              norm_on(cpu_machine(), dtype, NormKind::kInfinity).value);
  }
}

StepControl decided_on(Machine& where, const std::vector<Vote>& votes) {
  const Values<Vote> device_votes(votes, where);
  const Value<StepControl> control(StepControl{}, where);
  const VoteRules rules{.world = static_cast<std::int32_t>(votes.size()),
                        .clip_norm = 0.7,
                        .gradient_scale = 1.0 / 3,
                        .scale_by_items = true};
  decide(device_votes.get(), rules, control.get(), where.stream());
  return control.value();
}

TEST(TwinsSmall, DecideToTheSameBits) {
  std::vector<Vote> votes(300);
  const auto norms = random_values(DType::kFloat64, 300, 8, 1, 1e3);
  for (std::size_t r = 0; r < votes.size(); ++r) {
    votes[r].norm = std::fabs(norms[r]);
    votes[r].num_items = 1.0 + static_cast<double>(r % 7);
    votes[r].loss = norms[r] / 7;
    votes[r].flags = kVoteHasLoss;
  }
  const StepControl cpu = decided_on(cpu_machine(), votes);
  const StepControl gpu = decided_on(machine(), votes);
  EXPECT_EQ(gpu.gradient_scale, cpu.gradient_scale);
  EXPECT_EQ(gpu.norm, cpu.norm);
  EXPECT_EQ(gpu.loss, cpu.loss);
  EXPECT_EQ(gpu.num_items, cpu.num_items);
  EXPECT_EQ(gpu.time, cpu.time);
}

std::uint64_t checksum_on(Machine& where, std::int64_t numel) {
  const Array array(DType::kBFloat16, random_values(DType::kBFloat16, numel, 5),
                    0, where);
  const Value<std::uint64_t> result(0, where);
  checksum(array.view(), 42, result.get(), where.stream());
  return result.value();
}

TEST(TwinsSmall, ChecksumToTheSameBits) {
  for (const std::int64_t numel : {0, 1, 7, 1000, 100'003})
    EXPECT_EQ(checksum_on(machine(), numel), checksum_on(cpu_machine(), numel));
}

}  // namespace
}  // namespace ddp::test
