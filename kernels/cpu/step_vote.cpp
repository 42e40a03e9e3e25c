#include <algorithm>
#include <cmath>

#include "kernels/cpu/gradient.h"
#include "kernels/cpu/parallel.h"
#include "kernels/formula/vote.h"
#include "kernels/prepared.h"
#include "kernels/twins.h"

namespace ddp::cpu {
namespace {

using formula::norm_join;

/// First element of the chunk whose sum is not finite, as a position. Only
/// called when the chunk's part is not finite, so its speed does not matter.
template <typename S>
std::int64_t find_non_finite(const UpdateTable& table, const Chunk& chunk) {
  const UpdateRun& run = table.runs()[static_cast<std::size_t>(chunk.run)];
  S buffer[kTile];
  for (std::int64_t i = 0; i < chunk.count; i += kTile) {
    const std::int64_t n = std::min(kTile, chunk.count - i);
    const S* g = summed<S>(run.gradient, table.gradient_dtype(),
                           chunk.begin + i, n, buffer);
    for (std::int64_t j = 0; j < n; ++j)
      if (!formula::is_finite(g[j])) return run.position + chunk.begin + i + j;
  }
  return kAllFinite;
}

/// A finite fp32 sum has a finite fp64 square, so the part itself tells
/// whether an element was not finite; fp64 gradients may overflow instead,
/// and then the search finds nothing.
template <typename S>
NormPart chunk_norm(const UpdateTable& table, const Chunk& chunk, NormKind kind,
                    double power) {
  const UpdateRun& run = table.runs()[static_cast<std::size_t>(chunk.run)];
  const auto add = tiles<S>().norm[static_cast<int>(kind)];
  double lanes[kLanes] = {};
  S buffer[kTile];
  for (std::int64_t i = 0; i < chunk.count; i += kTile) {
    const std::int64_t n = std::min(kTile, chunk.count - i);
    add(lanes,
        summed<S>(run.gradient, table.gradient_dtype(), chunk.begin + i, n,
                  buffer),
        power, n);
  }
  NormPart part;
  for (const double lane : lanes)
    part.value = norm_join(kind, part.value, lane);
  if (!formula::is_finite(part.value))
    part.first_non_finite = find_non_finite<S>(table, chunk);
  return part;
}

}  // namespace

void norm(const UpdateTable& table, NormKind kind, double power,
          NormPart* part) {
  UpdateTable::Prepared& p = *table.prepared();
  const auto count = static_cast<std::int64_t>(p.list.chunks.size());
  const std::int64_t bytes =
      table.numel() *
      static_cast<std::int64_t>(size_of(table.gradient_dtype()));
  const bool wide = table.gradient_dtype() == DType::kFloat64;
  parallel_for(count, bytes, [&](std::int64_t i) {
    const auto index = static_cast<std::size_t>(i);
    const Chunk& chunk = p.list.chunks[index];
    p.parts[index] = wide ? chunk_norm<double>(table, chunk, kind, power)
                          : chunk_norm<float>(table, chunk, kind, power);
  });
  NormPart total;
  for (const NormPart& one : p.parts) {
    total.value = norm_join(kind, total.value, one.value);
    total.first_non_finite =
        formula::earlier(total.first_non_finite, one.first_non_finite);
  }
  *part = total;
}

void cast_vote(const Vote& host_part, const NormPart* parts, std::int32_t count,
               NormKind kind, const float* loss, const std::uint64_t* replica,
               Vote* vote) {
  *vote = formula::make_vote(host_part, parts, count, kind, loss, replica);
}

void decide(const Vote* votes, const VoteRules& rules, StepControl* control) {
  formula::Tally tally;
  for (std::int32_t rank = 0; rank < rules.world; ++rank)
    formula::count_vote(tally, votes[rank], rank, rules);
  formula::conclude(tally, rules, control);
}

void advance_clocks(const StepControl* control, const ParameterClocks& clocks) {
  if (control->apply == 0) return;
  for (std::int32_t i = 0; i < clocks.count; ++i)
    if (clocks.used[i] != 0) ++clocks.time[i];
}

}  // namespace ddp::cpu
