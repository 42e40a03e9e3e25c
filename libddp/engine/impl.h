/// \file
/// The parts of DataParallel, joined. Private to this folder.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libddp/comm/recorded_communicator.h"
#include "libddp/engine/data_parallel.h"
#include "libddp/engine/mailbox.h"
#include "libddp/engine/usage.h"
#include "libddp/optim/sharded_optimizer.h"
#include "libddp/reduce/reducer.h"

namespace ddp {

struct DataParallel::Impl {
  Impl(const World& world, std::vector<ParameterSpec> parameters,
       DataParallelOptions options);

  // impl.cpp: construction and lookup
  static Plan make_plan(const World& world,
                        std::vector<ParameterSpec> parameters,
                        const DataParallelOptions& options);
  std::vector<int> group_indices() const;
  std::vector<OptimizerConfig> group_configs() const;
  ArenaMemory allocate_arena(int arena);
  int index_of(const std::string& name) const;
  TensorView weight(int parameter) const;
  /// This owner's place in the arena, whoever owns the weights.
  TensorView arena_weight(int owner) const;
  TensorView gradient(int owner) const;
  void unfreeze(int parameter);
  void expect_stream(StreamView stream, const char* call) const;
  std::string describe() const;

  // weights.cpp
  void initialize(const std::function<void(int, std::span<float>)>& fill,
                  int root);
  void initialize_bucket(const std::function<void(int, std::span<float>)>& fill,
                         int root, int arena, int bucket, StreamView stream);
  void broadcast_weights(int root);
  /// Copies adopted weights into the arena, or back.
  void move_adopted_weights(bool into_arena, StreamView stream);
  std::vector<float> read_weight(int parameter);
  std::vector<float> read_gradient(int parameter);
  std::vector<float> to_host(TensorView tensor, StreamView stream) const;

  // step.cpp
  GradientTarget grad(int parameter, StreamView stream);
  void grad_ready(int parameter, StreamView stream);
  void finish_backward(StreamView stream);
  void sync_gradients(StreamView stream);
  void step(const StepInput& input, StreamView stream);
  void join(StreamView stream);
  void zero_grad(StreamView stream);
  void close_window(StreamView stream);
  void take_adopted_gradients(StreamView stream);
  void return_adopted_gradients(StreamView stream);
  void vote(const StepInput& input, std::uint32_t flags, StreamView stream);
  VoteRules rules(const StepInput& input) const;
  void reorder();
  void post(const StepInput& input, StreamView stream);

  // judge.cpp: what steps found out
  void collect(bool wait);
  void judge(bool all);
  void judge(const Mailbox::Letter& letter);
  void judge_non_finite(const Mailbox::Letter& letter);
  StepReport report(const Mailbox::Letter& letter) const;
  [[noreturn]] void raise_operations_differ(const StepControl& control);

  /// Runs `act`; what it throws is thrown again by every later call, with
  /// the step in which it happened.
  template <typename Act>
  auto guarded(const char* call, Act act) -> decltype(act());
  [[noreturn]] void fail(const char* call, const Error& error);
  std::string stall_report();
  std::string ended_text();
  void leave_note() noexcept;

  World world;
  DataParallelOptions options;
  std::unique_ptr<RecordedCommunicator> communicator;
  Plan plan;
  std::vector<Buffer> buffers;  ///< outlive what follows
  std::vector<ArenaMemory> memory;
  std::unique_ptr<ShardedOptimizer> optimizer;
  std::unique_ptr<Reducer> reducer;
  std::unique_ptr<UsageVote> usage;
  Buffer votes;    ///< world Votes
  Buffer control;  ///< one StepControl
  Buffer replica;  ///< one checksum
  Mailbox mailbox;

  bool sync_enabled = true;
  std::uint32_t steps = 0;  ///< completed calls of step()
  std::deque<Mailbox::Letter> unjudged;
  std::vector<StepReport> reports;
  bool stop_seen = false;
  bool warned_non_finite = false;
  std::optional<Error> failure;
  bool weighs_by_items = false;  ///< of the last step, for join()
  bool last_all_joined = false;
};

template <typename Act>
auto DataParallel::Impl::guarded(const char* call, Act act) -> decltype(act()) {
  if (failure) raise(failure->kind(), failure->what());
  try {
    return act();
  } catch (const InvalidArgument&) {
    throw;  // the caller's to correct; nothing is lost
  } catch (const Error& error) {
    fail(call, error);
  }
}

}  // namespace ddp
