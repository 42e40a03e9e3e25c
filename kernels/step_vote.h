/// \file
/// The step vote: what ranks tell each other before an update, and the
/// decision that each derives from it on its own device.
///
/// Every rank writes one Vote, one all-gather brings all of them to all
/// ranks in rank order, and decide() turns them into the same StepControl
/// everywhere. The update kernels read that StepControl on the device, so
/// no step waits for the host.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "kernels/core/tensor.h"
#include "kernels/update_table.h"

namespace ddp {

/// Which norm of the gradient is taken.
enum class NormKind : std::int32_t {
  kTwo,       ///< square root of the sum of squares
  kInfinity,  ///< largest magnitude
  kOne,       ///< sum of magnitudes
  kPower,     ///< (sum of magnitude^p)^(1/p) for another p > 0
};

inline constexpr std::int64_t kAllFinite =
    std::numeric_limits<std::int64_t>::max();

/// One rank's part of a norm, on the device.
struct NormPart {
  /// Sum of squares, of magnitudes, or of powers; or the largest magnitude.
  double value = 0;
  /// Smallest position (UpdateRun::position + index) of an element whose sum
  /// over sources is infinite or NaN; kAllFinite if there is none.
  std::int64_t first_non_finite = kAllFinite;
};

/// Writes the norm part of all gradients of `table` to *part, summed in fp64
/// in an order that depends on the table alone: equal input gives equal bits
/// from run to run. Reads each gradient once, sources summed in list order.
/// `power` is read for NormKind::kPower only.
void norm(const UpdateTable& table, NormKind kind, double power, NormPart* part,
          StreamView stream);

/// What one rank says. 64 bytes, sent as bytes.
struct alignas(64) Vote {
  double norm = 0;  ///< combined NormParts of this rank's slices, unscaled
  std::int64_t first_non_finite = kAllFinite;
  double num_items = 0;  ///< items this rank's gradient sums over
  double loss = 0;
  std::uint64_t operations = 0;  ///< hash of the collectives issued so far
  std::uint64_t replica = 0;     ///< checksum of replicated weights
  std::uint32_t flags = 0;       ///< VoteFlag bits
  std::uint32_t step = 0;
  std::uint64_t reserved = 0;
};
static_assert(sizeof(Vote) == 64);

enum VoteFlag : std::uint32_t {
  kVoteStop = 1u,           ///< this rank asks all to stop after this step
  kVoteHasLoss = 2u,        ///< `loss` was given
  kVoteHasReplica = 4u,     ///< `replica` was computed this step
  kVoteLossNotFinite = 8u,  ///< `loss` is infinite or NaN
  kVoteJoined = 16u  ///< this rank has no more data and follows the others
};

/// How votes become a decision; equal on all ranks.
struct VoteRules {
  std::int32_t world = 1;
  NormKind kind = NormKind::kTwo;
  double power = 2;
  /// Largest norm after clipping; 0 clips nothing.
  double clip_norm = 0;
  /// Factor of every gradient before clipping, such as 1 / world.
  double gradient_scale = 1;
  /// Divide by the sum of num_items over ranks instead of by `world`:
  /// gradient_scale is then multiplied by 1 / sum.
  bool scale_by_items = false;
  /// A non-finite gradient or loss leaves weights and state as they are.
  bool skip_non_finite = true;
  /// Whether NormParts hold every element once over all ranks (true), or
  /// each rank's part already covers all (a world of replicas).
  bool parts_are_disjoint = true;
};

/// The decision, on the device; copied to the host some time later.
struct StepControl {
  /// What an update multiplies gradients with: scale and clip factor.
  double gradient_scale = 1;
  /// 1: update; 0: leave weights and state bitwise as they are.
  std::int32_t apply = 1;
  /// Updates applied so far, this one included. Kept over steps.
  std::int64_t time = 0;
  /// Updates skipped so far, and in a row. Kept over steps.
  std::int64_t skipped = 0;
  std::int64_t skipped_in_a_row = 0;
  double norm = 0;       ///< of the scaled gradient, before clipping
  double loss = 0;       ///< mean over the ranks that gave one
  double num_items = 0;  ///< sum over ranks
  std::int64_t first_non_finite = kAllFinite;
  std::int32_t non_finite_rank = -1;  ///< rank that saw it, or -1
  std::int32_t loss_rank = -1;        ///< first rank whose loss is not finite
  std::int32_t stop = 0;              ///< 1: some rank asked to stop
  std::int32_t operations_rank = -1;  ///< first rank that differs from rank 0
  std::int32_t replica_rank = -1;     ///< first rank that differs from rank 0
  std::int32_t all_joined = 0;  ///< 1: no rank has data, nothing was applied
  std::uint32_t step = 0;
};

/// Assembles *vote from `host_part`, the `count` NormParts at `parts` (summed,
/// or maximised, in order), the loss at `loss` (a float on the device, or null
/// to use host_part's) and the checksum at `replica` (null: none). Sets the
/// flags kVoteHasLoss, kVoteHasReplica and kVoteLossNotFinite accordingly.
void cast_vote(const Vote& host_part, const NormPart* parts, std::int32_t count,
               NormKind kind, const float* loss, const std::uint64_t* replica,
               Vote* vote, StreamView stream);

/// Combines `rules.world` votes, in rank order, into *control. Every rank
/// computes the same bits. An update is not applied when operations differ
/// between ranks, when something is not finite and the rules say skip (which
/// counts as skipped), or when all ranks have joined (which does not).
void decide(const Vote* votes, const VoteRules& rules, StepControl* control,
            StreamView stream);

/// Per-parameter clocks, for parameters that are not updated in every step.
struct ParameterClocks {
  /// Ranks that used the parameter in this step; 0 leaves it untouched.
  const std::int32_t* used = nullptr;
  /// Updates of the parameter so far, this one included.
  std::int64_t* time = nullptr;
  std::int32_t count = 0;
};

/// time[i] += 1 for every used parameter, if *control applies an update.
void advance_clocks(const StepControl* control, const ParameterClocks& clocks,
                    StreamView stream);

}  // namespace ddp
