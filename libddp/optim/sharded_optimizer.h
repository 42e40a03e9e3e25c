/// \file
/// ShardedOptimizer: optimizer state of the elements this rank updates, and
/// the passes over them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/step_vote.h"
#include "kernels/update_table.h"
#include "libddp/device/buffer.h"
#include "libddp/optim/config.h"
#include "libddp/optim/shard_plan.h"

namespace ddp {

/// Memory of one arena, given out elsewhere.
struct ArenaMemory {
  TensorView weights;
  TensorView gradients;  ///< no data for a frozen arena
};

struct ShardedOptimizerOptions {
  int rank = 0;
  /// State for this rank's slices alone, instead of for everything.
  bool sharded = false;
  /// Keep fp32 masters of narrower weights.
  bool master_weights = true;
  /// Every parameter has its own clock, since any may go unused in a step.
  bool own_clocks = false;
  Device device;
};

/// Owns master weights and moments, zero at first, and walks them with the
/// norm and update passes. Work is enqueued on the given stream; nothing
/// waits for the device after construction. One thread at a time.
class ShardedOptimizer {
 public:
  /// `groups[0]` is for parameters that `group_of` (by owner) maps to 0, and
  /// so on. Throws InvalidArgument unless all groups are of one kind.
  ShardedOptimizer(const Plan& plan, std::vector<ArenaMemory> arenas,
                   std::vector<OptimizerConfig> groups,
                   std::vector<int> group_of,
                   const ShardedOptimizerOptions& options);

  /// Master weights become what the weights are.
  void load_masters(StreamView stream);
  /// One part per trainable arena, at norm_parts().
  void norm(NormKind kind, double power, StreamView stream);
  const NormPart* norm_parts() const { return norm_parts_.as<NormPart>(); }
  int norm_part_count() const { return static_cast<int>(norms_.size()); }
  /// Updates the weights of every arena as *control says.
  void update(const StepControl* control, const ParameterClocks& clocks,
              double lr_factor, StreamView stream);
  /// The plan was given another trainable arena.
  void add_arena(ArenaMemory memory);

  std::vector<OptimizerConfig>& groups() { return groups_; }
  /// Learning rate of a group as it is now.
  double lr(std::size_t group) const;
  /// The owner whose element is at a position that a norm reported.
  int owner_at(std::int64_t position) const;
  /// Master weights of an arena's state, or no data where there are none.
  TensorView masters(int arena) const;
  const std::vector<ShardRange>& ranges(int arena) const {
    return states_[arena].ranges;
  }
  bool has_clock(int owner) const;
  std::size_t state_bytes() const;

 private:
  struct ArenaState {
    std::vector<ShardRange> ranges;
    Buffer master, moment1, moment2;
    std::int64_t position = 0;  ///< of element 0, over all arenas
    UpdateTable update;
  };

  void build_arena(int arena);
  UpdateTable make_table(int arena, const std::vector<ShardRange>& ranges,
                         const ArenaState& state, bool with_state) const;
  Buffer zeroed(std::int64_t elements, DType dtype) const;

  const Plan& plan_;
  std::vector<ArenaMemory> memory_;
  std::vector<OptimizerConfig> groups_;
  std::vector<int> group_of_;
  ShardedOptimizerOptions options_;
  std::vector<ArenaState> states_;
  std::vector<UpdateTable> norms_;
  Buffer norm_parts_;
};

}  // namespace ddp
