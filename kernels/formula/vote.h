/// \file
/// How a vote is written and how votes become a decision; the same bits on
/// host and device.
#pragma once

#include "kernels/formula/norm.h"

namespace ddp::formula {

/// step_vote.h cast_vote(), for one thread.
DDP_HOST_DEVICE inline Vote make_vote(const Vote& host_part,
                                      const NormPart* parts, std::int32_t count,
                                      NormKind kind, const float* loss,
                                      const std::uint64_t* replica) {
  Vote vote = host_part;
  for (std::int32_t i = 0; i < count; ++i) {
    vote.norm = norm_join(kind, vote.norm, parts[i].value);
    vote.first_non_finite =
        earlier(vote.first_non_finite, parts[i].first_non_finite);
  }
  if (loss != nullptr) {
    vote.loss = static_cast<double>(*loss);
    vote.flags |= kVoteHasLoss;
  }
  vote.flags &= ~(kVoteHasReplica | kVoteLossNotFinite);
  if ((vote.flags & kVoteHasLoss) && !is_finite(vote.loss))
    vote.flags |= kVoteLossNotFinite;
  if (replica != nullptr) {
    vote.replica = *replica;
    vote.flags |= kVoteHasReplica;
  }
  return vote;
}

/// What is known after the votes of the first ranks.
struct Tally {
  double norm = 0;
  double num_items = 0;
  double loss = 0;
  std::int64_t losses = 0;
  std::int64_t first_non_finite = kAllFinite;
  std::int32_t non_finite_rank = -1;
  std::int32_t loss_rank = -1;
  std::int32_t stop = 0;
  bool all_joined = true;
  std::uint64_t operations = 0;
  std::int32_t operations_rank = -1;
  std::uint64_t replica = 0;
  bool has_replica = false;
  std::int32_t replica_rank = -1;
  std::uint32_t step = 0;
};

DDP_HOST_DEVICE inline void count_health(Tally& t, const Vote& vote,
                                         std::int32_t rank) {
  if (vote.first_non_finite < t.first_non_finite) {
    t.first_non_finite = vote.first_non_finite;
    t.non_finite_rank = rank;
  }
  if ((vote.flags & kVoteLossNotFinite) && t.loss_rank < 0) t.loss_rank = rank;
  if (vote.flags & kVoteStop) t.stop = 1;
  if (!(vote.flags & kVoteJoined)) t.all_joined = false;
  if (vote.operations != t.operations && t.operations_rank < 0)
    t.operations_rank = rank;
  if (!(vote.flags & kVoteHasReplica)) return;
  if (t.has_replica && vote.replica != t.replica && t.replica_rank < 0)
    t.replica_rank = rank;
  if (!t.has_replica) t.replica = vote.replica;
  t.has_replica = true;
}

/// Counts the vote of the next rank. REQUIRES: rank order.
DDP_HOST_DEVICE inline void count_vote(Tally& t, const Vote& vote,
                                       std::int32_t rank,
                                       const VoteRules& rules) {
  if (rank == 0) {
    t.operations = vote.operations;
    t.step = vote.step;
  }
  if (rank == 0 || rules.parts_are_disjoint)
    t.norm = norm_join(rules.kind, t.norm, vote.norm);
  t.num_items += vote.num_items;
  if (vote.flags & kVoteHasLoss) {
    t.loss += vote.loss;
    ++t.losses;
  }
  count_health(t, vote, rank);
}

/// Writes the decision, and moves the counts in *control that are kept.
DDP_HOST_DEVICE inline void conclude(const Tally& t, const VoteRules& rules,
                                     StepControl* control) {
  double scale = rules.gradient_scale;
  // A step without any item has a gradient of zeros, not of 0/0.
  if (rules.scale_by_items) scale = t.num_items > 0 ? scale / t.num_items : 0.0;
  const double norm =
      magnitude(scale) * norm_root(rules.kind, rules.power, t.norm);
  const bool clips =
      rules.clip_norm > 0 && norm > rules.clip_norm && is_finite(norm);
  const bool finite =
      t.first_non_finite == kAllFinite && t.loss_rank < 0 && is_finite(norm);
  const bool apply = t.operations_rank < 0 && !t.all_joined &&
                     (finite || !rules.skip_non_finite);
  const bool skips = !apply && !t.all_joined;

  StepControl& c = *control;
  c.gradient_scale = clips ? scale * (rules.clip_norm / norm) : scale;
  c.apply = apply ? 1 : 0;
  c.time += apply ? 1 : 0;
  c.skipped += skips ? 1 : 0;
  c.skipped_in_a_row = apply ? 0 : c.skipped_in_a_row + (skips ? 1 : 0);
  c.norm = norm;
  c.loss = t.losses > 0 ? t.loss / static_cast<double>(t.losses) : 0.0;
  c.num_items = t.num_items;
  c.first_non_finite = t.first_non_finite;
  c.non_finite_rank = t.non_finite_rank;
  c.loss_rank = t.loss_rank;
  c.stop = t.stop;
  c.all_joined = t.all_joined ? 1 : 0;
  c.operations_rank = t.operations_rank;
  c.replica_rank = t.replica_rank;
  c.step = t.step;
}

}  // namespace ddp::formula
