#include "libddp/optim/schedule.h"

#include <cmath>
#include <numbers>

#include "kernels/core/error.h"

namespace ddp {
namespace {

double warmup_progress(const Schedule& schedule, std::int64_t step) {
  const auto s = static_cast<double>(step);
  const auto n = static_cast<double>(schedule.warmup_steps);
  if (schedule.warmup == Warmup::kLinear) return s / n;
  // One step of warm-up has log(1) = 0 below the line: nothing to climb.
  return n > 1 ? std::log(s + 1) / std::log(n) : 0;
}

double decayed(Decay decay, double progress) {
  switch (decay) {
    case Decay::kConstant: return 1;
    case Decay::kLinear: return 1 - progress;
    case Decay::kCosine: return (1 + std::cos(std::numbers::pi * progress)) / 2;
  }
  return 1;
}

bool is_factor(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

void Schedule::check() const {
  DDP_EXPECT(total_steps >= 0, InvalidArgument, "schedule: total_steps is ",
             total_steps, ", but must not be negative");
  DDP_EXPECT(decay == Decay::kConstant || total_steps > 0, InvalidArgument,
             "schedule: total_steps is ", total_steps, ", but ", name(decay),
             " decay needs at least 1");
  DDP_EXPECT(warmup_steps >= 0, InvalidArgument, "schedule: warmup_steps is ",
             warmup_steps, ", but must not be negative");
  DDP_EXPECT(decay == Decay::kConstant || warmup_steps <= total_steps,
             InvalidArgument, "schedule: warmup_steps is ", warmup_steps,
             ", more than total_steps, ", total_steps);
  DDP_EXPECT(is_factor(warmup_start), InvalidArgument,
             "schedule: warmup_start is ", warmup_start,
             ", but must be finite and not negative");
  DDP_EXPECT(is_factor(final_factor), InvalidArgument,
             "schedule: final_factor is ", final_factor,
             ", but must be finite and not negative");
}

double Schedule::factor(std::int64_t step) const noexcept {
  if (step < warmup_steps)
    return warmup_start + (1 - warmup_start) * warmup_progress(*this, step);
  if (decay == Decay::kConstant) return 1;
  if (step >= total_steps) return final_factor;
  const double progress = static_cast<double>(step - warmup_steps) /
                          static_cast<double>(total_steps - warmup_steps);
  return final_factor + (1 - final_factor) * decayed(decay, progress);
}

std::string_view name(Decay decay) noexcept {
  switch (decay) {
    case Decay::kConstant: return "constant";
    case Decay::kLinear: return "linear";
    case Decay::kCosine: return "cosine";
  }
  return "unknown";
}

Decay parse_decay(std::string_view text) {
  for (const Decay decay : {Decay::kConstant, Decay::kLinear, Decay::kCosine})
    if (text == name(decay)) return decay;
  throw InvalidArgument(concat("schedule \"", text,
                               "\" is not known; choose constant, linear or "
                               "cosine"));
}

double scale_rate(double base_rate, std::int64_t base_batch,
                  std::int64_t global_batch, RateScaling scaling) {
  DDP_EXPECT(base_batch > 0 && global_batch > 0, InvalidArgument,
             "rate scaling: base_batch is ", base_batch,
             " and global_batch is ", global_batch,
             ", but both must be at least 1");
  const double ratio =
      static_cast<double>(global_batch) / static_cast<double>(base_batch);
  switch (scaling) {
    case RateScaling::kNone: return base_rate;
    case RateScaling::kLinear: return base_rate * ratio;
    case RateScaling::kSquareRoot: return base_rate * std::sqrt(ratio);
  }
  return base_rate;
}

}  // namespace ddp
