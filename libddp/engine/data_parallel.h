/// \file
/// DataParallel: a model's parameters, trained by all ranks together.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libddp/bootstrap/world.h"
#include "libddp/comm/communicator.h"
#include "libddp/engine/options.h"
#include "libddp/reduce/parameter.h"

namespace ddp {

/// Gives out memory for weights and gradients, reduces gradients while
/// backward goes on, and updates the weights.
///
///     DataParallel dp(world, model.parameters(), {.clip_norm = 1.0});
///     dp.initialize([&](int p, std::span<float> w) { model.init(p, w); });
///     for (auto batch : loader) {
///       float loss = model.forward(batch, dp);
///       model.backward([&](int p) { dp.grad_ready(p, stream); });
///       dp.step({.loss = loss}, stream);
///     }
///
/// Construction, initialize(), step(), sync_gradients() and the reading of
/// whole weights are collective. One thread at a time may call members; on a
/// GPU nothing here waits for the device except where its name or comment
/// says so. Errors: InvalidArgument for wrong use, PeerFailure and Timeout
/// when other ranks fail, NonFinite by option; after an error of a collective
/// the object throws the same again.
class DataParallel {
 public:
  DataParallel(const World& world, std::vector<ParameterSpec> parameters,
               DataParallelOptions options = {});
  ~DataParallel();
  DataParallel(DataParallel&&) noexcept;

  int parameter_count() const noexcept;
  const ParameterSpec& parameter(int index) const;
  /// Index of a name. Throws InvalidArgument with the nearest known name.
  int index_of(const std::string& name) const;

  /// The weights that forward reads: all elements, in the parameter's dtype.
  TensorView weight(int parameter) const;

  /// Fills the weights: on rank `root`, `fill(p, values)` is called once per
  /// distinct parameter with numel fp32 values to set; all ranks receive them
  /// (the master copies too, before rounding). Waits for the device.
  void initialize(const std::function<void(int, std::span<float>)>& fill,
                  int root = 0);
  /// Hands the weights of rank `root` to all ranks, for callers that filled
  /// weight() themselves. Waits for the device.
  void broadcast_weights(int root = 0);
  /// A whole weight in fp32 on the host, from the master copy where there is
  /// one. Collective. Waits for the device.
  std::vector<float> read_weight(int parameter);
  /// A whole gradient of the last step, averaged over ranks, in fp32 on the
  /// host: valid between the end of a backward and the next one. Collective.
  /// Waits for the device.
  std::vector<float> read_gradient(int parameter);

  /// Where backward writes the gradient of `parameter` next. Each call
  /// promises one write of the whole gradient on `stream`.
  GradientTarget grad(int parameter, StreamView stream);
  /// The gradient is complete for this micro-batch, in order of `stream`. A
  /// bucket whose gradients are all complete leaves at once. A parameter that
  /// others are tied to is ready when all have been reported.
  void grad_ready(int parameter, StreamView stream);

  /// Backward is over: reduces what is left. step() calls it if the user did
  /// not. Throws InvalidArgument naming parameters that were not reached,
  /// unless find_unused_parameters.
  void finish_backward(StreamView stream);

  /// While true, backward only accumulates on this rank. Read when gradients
  /// become ready, wherever forward ran.
  void set_gradient_sync(bool enabled) noexcept;
  bool gradient_sync() const noexcept;
  /// Reduces what was accumulated without reduction. A second call changes
  /// nothing. Collective.
  void sync_gradients(StreamView stream);

  /// Votes, clips and updates; forward may be enqueued on `stream` at once.
  /// Throws InvalidArgument when gradients were accumulated but never
  /// reduced (and says how many), or when there are none. Throws what an
  /// earlier step found out, after the same step on all ranks: the step
  /// itself on the CPU, max_steps_in_flight steps later on a GPU.
  void step(const StepInput& input, StreamView stream);
  /// Forgets all gradients, in order of `stream`.
  void zero_grad(StreamView stream);

  /// Trains on although this rank has no more batches: takes part in the
  /// others' steps with gradients of zero until all ranks have joined. What
  /// was accumulated but not yet stepped on enters the first of them. The
  /// others must reduce once a step (all but the last micro-batch under
  /// NoSync). Collective over the ranks that are left. Waits for the device.
  void join(StreamView stream);

  /// Reports of steps whose vote has reached the host since the last call, in
  /// order; never waits, never throws what a step found out.
  std::vector<StepReport> poll_reports();
  /// The same for all steps so far. Waits for the device, and throws what
  /// those steps found out (drift, mismatch, non-finite values by option).
  std::vector<StepReport> wait_reports();
  /// Whether a rank has asked to stop. Turns true after the same step on all
  /// ranks: the one that asked, or on a GPU, where the vote is read later,
  /// max_steps_in_flight steps on.
  bool should_stop() const noexcept;

  /// Learning rates and other hyper-parameters of the groups, live. Index 0
  /// is the default optimizer, then options.groups in order.
  std::vector<OptimizerConfig>& hyper_parameters() noexcept;

  /// Starts to train a frozen parameter. Collective.
  void unfreeze(int parameter);

  OverlapStatistics overlap() const;
  /// What is in force, with bytes per rank: a table for people.
  std::string describe() const;
  /// Means over ranks of a few host values. Collective. Waits.
  std::vector<double> average(std::span<const double> values);

  Communicator& communicator() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Stops gradient reduction in a scope.
class NoSync {
 public:
  explicit NoSync(DataParallel& dp) : dp_(dp), before_(dp.gradient_sync()) {
    dp_.set_gradient_sync(false);
  }
  ~NoSync() { dp_.set_gradient_sync(before_); }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  DataParallel& dp_;
  bool before_;
};

}  // namespace ddp
