/// \file
/// Options of DataParallel, and what one step takes and reports.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/step_vote.h"
#include "libddp/comm/observer.h"
#include "libddp/optim/config.h"
#include "libddp/precision/precision.h"

namespace ddp {

/// What happens when a gradient or the loss is infinite or NaN; the same on
/// every rank.
enum class NonFiniteAction {
  kSkip,   ///< leave weights and state bitwise as they are, count, warn once
  kRaise,  ///< the same, and the next call throws NonFinite
};

struct DataParallelOptions {
  /// 0: all ranks hold everything.
  int zero_stage = 0;
  Precision precision = Precision::fp32();
  /// For parameters that are in none of `groups`.
  OptimizerConfig optimizer = AdamW{};
  std::vector<ParameterGroup> groups;

  /// Largest norm of the gradient after clipping; 0 clips nothing.
  double clip_norm = 0;
  NormKind clip_kind = NormKind::kTwo;
  /// p of NormKind::kPower.
  double clip_power = 2;

  /// Bytes of gradient in a bucket. Larger buckets use the wire better,
  /// smaller ones start earlier and leave less at the end.
  std::size_t bucket_bytes = std::size_t{25} << 20;
  /// Allow parameters that a backward does not reach: those that no rank
  /// reached stay untouched, for the others absence counts as zero. Costs one
  /// small all-reduce a step. Off: an unreached parameter is an error at the
  /// end of the same backward that names it.
  bool find_unused_parameters = false;
  /// Reorder buckets by measured ready times, on all ranks together.
  bool reorder_buckets = true;

  NonFiniteAction non_finite = NonFiniteAction::kSkip;
  /// Skipping more steps than this in a row is an error.
  int max_skipped_in_a_row = 100;
  /// Compare a checksum of the weights over ranks every so many steps; 0:
  /// never. A difference is an error that names the first rank that drifted.
  int drift_check_interval = 0;
  /// Compare every collective over all ranks before it is launched. Slow;
  /// for finding where ranks part.
  bool checked = false;
  /// Steps the host may run ahead of the device.
  int max_steps_in_flight = 4;

  /// Wraps the communicator before anything is issued, with a decorator of
  /// the caller's; empty: as it is.
  std::function<std::unique_ptr<Communicator>(std::unique_ptr<Communicator>)>
      decorate;
  /// Told when each collective ran, such as a CommLane of a Timeline; null:
  /// nobody. Costs two timed events a collective on a GPU.
  std::shared_ptr<Observer> observer;

  /// Name of the communicator backend; empty: chosen by the device.
  std::string backend;
};

/// What the user says about the step that ends.
struct StepInput {
  /// This rank's loss, for the report and the finite check: a float on the
  /// device, read in stream order...
  const float* device_loss = nullptr;
  /// ... or a value the host knows.
  std::optional<double> loss;
  /// Items (tokens, samples) that this rank's gradients of this step sum
  /// over, all micro-batches together. If given, on all ranks, gradients are
  /// divided by the sum over ranks instead of by the world size: the loss
  /// is then a sum over items, not a mean.
  std::optional<double> num_items;
  /// Learning rate of this step: factor of every group's lr.
  double lr_factor = 1;
  /// Ask all ranks to stop after this step.
  bool request_stop = false;
};

/// What is known about a step once its vote has reached the host.
struct StepReport {
  std::int64_t step = 0;
  bool applied = true;
  /// Mean over the ranks that gave one; 0 where none did.
  double loss = 0;
  /// Of the averaged gradient, before clipping.
  double norm = 0;
  double num_items = 0;
  /// Learning rate of the default group.
  double lr = 0;
  std::int64_t skipped_steps = 0;
  bool stop = false;
  /// From the end of backward to the end of the reduction, in ms.
  double exposed_ms = 0;
};

/// How much of the reduction the last backward hid.
struct OverlapStatistics {
  std::int64_t bytes_total = 0;
  /// Bytes of buckets launched before backward ended.
  std::int64_t bytes_launched_early = 0;
  double exposed_ms = 0;
  struct Bucket {
    int index = 0;
    std::int64_t bytes = 0;
    double launched_ms = 0;  ///< since the first gradient of the backward
  };
  std::vector<Bucket> buckets;
};

}  // namespace ddp
