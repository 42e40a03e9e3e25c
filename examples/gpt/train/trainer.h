/// \file
/// Trainer: one run, from first weights to the last line.
#pragma once

#include <chrono>
#include <optional>

#include "examples/gpt/model/model.h"
#include "examples/gpt/train/data.h"
#include "examples/gpt/train/engine_access.h"
#include "examples/gpt/train/options.h"
#include "examples/gpt/train/step_log.h"
#include "examples/gpt/train/uploader.h"
#include "libddp/bootstrap/world.h"
#include "libddp/device/stream.h"
#include "libddp/engine/data_parallel.h"
#include "libddp/optim/schedule.h"

namespace gpt {

/// Every member is collective. Errors leave as exceptions on every rank.
class Trainer {
 public:
  /// `options` as resolve() gave them.
  Trainer(const ddp::World& world, TrainOptions options, GptConfig config);

  /// Trains, evaluates, generates, writes weights, and ends with the line of
  /// JSON on rank 0's standard output. `stop` asks all ranks to end after a
  /// common update; it is looked at once an update.
  void run(const volatile int& stop);

 private:
  void fill_weights();
  void train(const volatile int& stop);
  void step(std::int64_t number, bool request_stop);
  double held_out_loss();
  void print_sample();
  void print_summary(double held_out);
  bool is_first() const { return world_.rank() == 0; }

  ddp::World world_;
  TrainOptions options_;
  GptConfig config_;
  ddp::Schedule schedule_;
  TrainingData data_;
  ddp::Stream stream_;
  Gpt model_;
  Uploader uploader_;
  ddp::DataParallel engine_;
  EngineAccess access_;
  StepLog log_;
  std::int64_t steps_done_ = 0;
};

}  // namespace gpt
