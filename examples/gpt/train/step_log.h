/// \file
/// StepLog: a line for people and a line of JSON for each update.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "libddp/engine/options.h"

namespace gpt {

/// Joins what DataParallel reports about an update, some updates later on a
/// GPU, with the time that the update took here. Writes on rank 0 alone.
class StepLog {
 public:
  struct Settings {
    bool writes = true;          ///< this is rank 0
    std::int64_t steps = 0;      ///< of the whole run
    double tokens_per_step = 0;  ///< over all ranks
    std::int64_t print_every = 1;
    std::string json_path;  ///< empty: none
  };
  /// Throws Error with path and reason if the file cannot be written.
  explicit StepLog(Settings settings);

  /// Update `step` took `ms` on this rank's clock, start to start.
  void add_time(std::int64_t step, double ms) { ms_of_step_[step] = ms; }
  void add(const ddp::StepReport& report);

  double last_loss() const { return last_loss_; }
  /// Of all updates but the first tenth.
  double median_ms() const;
  double median_exposed_ms() const;
  double tokens_per_s() const;

 private:
  void print(const ddp::StepReport& report, double ms, double rate) const;
  void write_json(const ddp::StepReport& report, double ms, double rate);

  Settings settings_;
  std::ofstream json_;
  std::map<std::int64_t, double> ms_of_step_;
  std::vector<double> ms_;
  std::vector<double> exposed_ms_;
  double last_loss_ = 0;
};

}  // namespace gpt
