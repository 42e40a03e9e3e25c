#include "examples/gpt/train/step_log.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "kernels/core/error.h"

namespace gpt {
namespace {

/// Median without the first tenth, in which caches and clocks settle.
double settled_median(std::vector<double> values) {
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(
                                                    values.size() / 10));
  if (values.empty()) return 0;
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

StepLog::StepLog(Settings settings) : settings_(std::move(settings)) {
  if (!settings_.writes || settings_.json_path.empty()) return;
  json_.open(settings_.json_path);
  DDP_EXPECT(json_, Error, "cannot write ", settings_.json_path, ": ",
             std::strerror(errno), "; give another path to --log");
}

void StepLog::add(const ddp::StepReport& report) {
  const auto found = ms_of_step_.find(report.step);
  const double ms = found == ms_of_step_.end() ? 0 : found->second;
  if (found != ms_of_step_.end()) ms_of_step_.erase(found);
  ms_.push_back(ms);
  exposed_ms_.push_back(report.exposed_ms);
  last_loss_ = report.loss;
  if (!settings_.writes) return;
  const double rate = ms > 0 ? settings_.tokens_per_step / ms * 1e3 : 0;
  const std::int64_t number = report.step + 1;
  if (number == 1 || number == settings_.steps ||
      number % settings_.print_every == 0)
    print(report, ms, rate);
  if (json_.is_open()) write_json(report, ms, rate);
}

void StepLog::print(const ddp::StepReport& report, double ms,
                    double rate) const {
  std::printf(
      "step %5lld/%lld  loss %7.4f  norm %7.4f  lr %.2e  %8.2f ms  "
      "%8.0f tokens/s  exposed %6.2f ms%s\n",
      static_cast<long long>(report.step + 1),
      static_cast<long long>(settings_.steps), report.loss, report.norm,
      report.lr, ms, rate, report.exposed_ms,
      report.applied ? "" : "  skipped: not finite");
  std::fflush(stdout);
}

void StepLog::write_json(const ddp::StepReport& report, double ms,
                         double rate) {
  // JSON has no NaN; nlohmann writes null for it.
  json_ << nlohmann::ordered_json{{"step", report.step + 1},
                                  {"loss", report.loss},
                                  {"norm", report.norm},
                                  {"lr", report.lr},
                                  {"ms", ms},
                                  {"tokens_per_s", rate},
                                  {"exposed_ms", report.exposed_ms},
                                  {"applied", report.applied}}
               .dump()
        << '\n'
        << std::flush;
}

double StepLog::median_ms() const { return settled_median(ms_); }

double StepLog::median_exposed_ms() const {
  return settled_median(exposed_ms_);
}

double StepLog::tokens_per_s() const {
  const double ms = median_ms();
  return ms > 0 ? settings_.tokens_per_step / ms * 1e3 : 0;
}

}  // namespace gpt
