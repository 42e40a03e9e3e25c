/// \file
/// Reducer: when a bucket of gradients leaves, and what is in it.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "libddp/comm/communicator.h"
#include "libddp/device/event.h"
#include "libddp/reduce/plan.h"

namespace ddp {

/// Sums gradients over ranks, bucket by bucket, while backward goes on.
///
/// A *window* is what one optimizer step consumes: one or more passes of
/// backward. In a pass that synchronises, a bucket is launched as soon as all
/// its gradients are ready and all buckets before it in the plan's launch
/// order have been launched, so all ranks issue the same collectives in the
/// same order. Buckets hold plain sums: of micro-batches, then of ranks.
///
/// One thread at a time. Nothing waits for the device.
class Reducer {
 public:
  struct Options {
    /// Leave each rank only its own slice of the sum.
    bool scatter = false;
    /// Do not complain about gradients that a pass did not produce.
    bool allow_unused = false;
  };

  /// `gradients[a]` is the memory of arena a (ignored for frozen arenas), all
  /// zero. `plan` and `communicator` must outlive the reducer.
  Reducer(const Plan& plan, std::vector<TensorView> gradients,
          Communicator& communicator, const Options& options);

  /// Where backward writes this gradient; see DataParallel::grad().
  GradientTarget target(int parameter, StreamView stream);
  /// The gradient is complete in order of `stream`. With `sync` its bucket
  /// may leave; without, it only counts as accumulated. True if this call
  /// launched the last bucket of the pass.
  bool mark_ready(int parameter, StreamView stream, bool sync);
  /// Ends a synchronising pass: launches what is left, absent gradients
  /// counting as zero. Throws InvalidArgument naming parameters that were not
  /// ready, unless allow_unused; the collectives are issued all the same, so
  /// that no other rank waits for them.
  void finish(StreamView stream);
  /// The same for a rank that has no more data: nothing needs to be ready.
  void finish_absent(StreamView stream);
  /// Launches every bucket that holds gradients which were not reduced.
  void sync(StreamView stream);
  /// Makes `stream` wait for all reductions.
  void block(StreamView stream) const;
  /// Ends the window: gradients are forgotten. What is written next, on any
  /// stream, comes after what `reader` holds now.
  void reset(StreamView reader);
  /// Makes `stream` come after the reader of the last window.
  void follow_reader(StreamView stream);

  /// A pass has begun and not all buckets have left.
  bool is_in_pass() const noexcept { return in_pass_; }
  /// Gradients accumulated since their bucket was last reduced.
  std::int64_t unreduced() const noexcept { return unreduced_; }
  /// Some bucket was reduced in this window.
  bool has_reduced() const noexcept { return has_reduced_; }
  /// Whether this rank produced a gradient of this owner in the window.
  bool was_used(int owner) const { return parameters_[owner].used; }

  /// An arena was appended to the plan.
  void add_arena(TensorView gradients);
  /// The launch order of the plan was changed, between two passes.
  void order_changed();

  /// Buckets in the order in which the last pass completed them.
  const std::vector<BucketRef>& ready_order() const { return ready_order_; }

  struct BucketTimes {
    BucketRef bucket;
    std::int64_t bytes = 0;
    double launched_ms = 0;  ///< since the pass began
    bool early = false;      ///< before finish()
  };
  /// Of the last pass, in launch order.
  const std::vector<BucketTimes>& times() const { return times_; }

 private:
  struct ParameterState {
    bool written = false;  ///< the slot holds something that counts
    bool used = false;     ///< in this window
    int reports = 0;       ///< in this pass, of as many as there are sharers
    std::int64_t unreduced = 0;
  };
  struct BucketState {
    int pending = 0;  ///< gradients that this pass has not completed
    bool launched = false;
    Work work;
    std::vector<StreamView> streams;  ///< producers in this pass
  };

  const ParameterSpec& spec(int parameter) const {
    return plan_.parameters()[parameter];
  }
  BucketState& state(BucketRef ref) { return buckets_[ref.arena][ref.bucket]; }
  const BucketLayout::Bucket& layout(BucketRef ref) const {
    return plan_.arenas()[ref.arena].layout.buckets()[ref.bucket];
  }
  TensorView slot(int owner) const;
  void expect_trainable(int parameter) const;
  void begin_pass();
  void reopen(BucketRef ref, StreamView stream);
  void fill_absent(BucketRef ref, StreamView stream);
  void join_producers(BucketRef ref, StreamView stream);
  void launch_ready(StreamView stream);
  void launch(BucketRef ref, StreamView stream);
  void count_reduced(BucketRef ref);
  std::vector<int> launch_rest(StreamView stream);
  Work reduce(BucketRef ref, TensorView view, StreamView stream);
  std::string bucket_text(BucketRef ref) const;
  /// Errors of `act` say which bucket they belong to.
  template <typename Act>
  void naming_bucket(BucketRef ref, Act act) const;
  std::string missing_text(const std::vector<int>& missing) const;

  const Plan& plan_;
  Communicator& communicator_;
  Options options_;
  std::vector<TensorView> gradients_;
  std::vector<ParameterState> parameters_;  ///< by owner
  std::vector<std::vector<BucketState>> buckets_;
  std::size_t cursor_ = 0;  ///< in the launch order
  bool in_pass_ = false;
  bool pass_complete_ = false;  ///< ended by itself, finish() still to come
  bool finishing_ = false;
  bool has_reduced_ = false;
  std::int64_t unreduced_ = 0;
  // The end of the last window's reading, and who already comes after it.
  Event read_;
  std::vector<StreamView> after_read_;
  std::vector<BucketRef> ready_order_;
  std::vector<BucketTimes> times_;
  std::chrono::steady_clock::time_point pass_begin_;
};

}  // namespace ddp
