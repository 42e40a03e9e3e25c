#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/gradient.h"
#include "kernels/cpu/parallel.h"
#include "kernels/prepared.h"
#include "kernels/twins.h"

namespace ddp::cpu {
namespace {

/// Elements [begin, begin + n) of one run, for one tile.
template <typename S>
class TileStreams {
 public:
  TileStreams(const UpdateTable& table, const UpdateRun& run,
              std::int64_t begin, std::int64_t n)
      : table_(table), run_(run), begin_(begin), n_(n) {}

  /// The gradient, unscaled. Summed in fp64 only for fp64 gradients.
  const S* gradient() {
    using Other = std::conditional_t<sizeof(S) == sizeof(float), double, float>;
    const DType dtype = table_.gradient_dtype();
    const bool wide = dtype == DType::kFloat64;
    if (wide == (sizeof(S) == sizeof(double)))
      return summed<S>(run_.gradient, dtype, begin_, n_, gradient_);
    Other other[kTile];
    const Other* sum = summed<Other>(run_.gradient, dtype, begin_, n_, other);
    tiles<S>().widen[index_of(dtype_of<Other>())](gradient_, sum, n_);
    return gradient_;
  }

  /// The weights to update: in place where they are S, else widened.
  S* weight() {
    if (run_.master != nullptr) return static_cast<S*>(run_.master) + begin_;
    if (in_place()) return static_cast<S*>(run_.weight.data[0]) + begin_;
    tiles<S>().widen[index_of(table_.weight_dtype())](
        weight_, element(run_.weight.data[0], table_.weight_dtype(), begin_),
        n_);
    return weight_;
  }

  S* state(void* moment) const { return static_cast<S*>(moment) + begin_; }

  /// Rounds the new weights into every destination.
  void store(const S* weight) {
    const DType dtype = table_.weight_dtype();
    const auto narrow = tiles<S>().narrow[index_of(dtype)];
    for (int i = 0; i < run_.weight.count; ++i) {
      void* to = element(run_.weight.data[i], dtype, begin_);
      if (to != weight) narrow(to, weight, n_);
    }
  }

 private:
  bool in_place() const { return table_.weight_dtype() == dtype_of<S>(); }

  const UpdateTable& table_;
  const UpdateRun& run_;
  std::int64_t begin_;
  std::int64_t n_;
  S gradient_[kTile];
  S weight_[kTile];
};

struct AdamRule {
  template <typename S>
  using Coefficients = formula::AdamCoefficients<S>;

  template <typename S>
  static Coefficients<S> coefficients(const formula::AdamValues& values,
                                      std::int64_t time) {
    return formula::adam_coefficients<S>(values, time);
  }

  template <typename S>
  static void apply(TileStreams<S>& streams, const UpdateRun& run, S scale,
                    std::int64_t n, const formula::AdamValues&,
                    const Coefficients<S>& c) {
    const S* g = streams.gradient();
    S* w = streams.weight();
    tiles<S>().adam(w, streams.state(run.moment1), streams.state(run.moment2),
                    g, scale, n, c);
    streams.store(w);
  }
};

struct SgdRule {
  template <typename S>
  using Coefficients = formula::SgdCoefficients<S>;

  template <typename S>
  static Coefficients<S> coefficients(const formula::SgdValues& values,
                                      std::int64_t time) {
    return formula::sgd_coefficients<S>(values, time);
  }

  template <typename S>
  static void apply(TileStreams<S>& streams, const UpdateRun& run, S scale,
                    std::int64_t n, const formula::SgdValues& values,
                    const Coefficients<S>& c) {
    const S* g = streams.gradient();
    S* w = streams.weight();
    if (values.momentum != 0) {
      tiles<S>().sgd_momentum(w, streams.state(run.moment1), g, scale, n, c);
    } else {
      tiles<S>().sgd(w, g, scale, n, c);
    }
    streams.store(w);
  }
};

std::int64_t bytes_of(const UpdateTable& table) {
  const auto width = static_cast<std::int64_t>(
      3 * size_of(table.weight_dtype()) + size_of(table.gradient_dtype()));
  return table.numel() * width;
}

template <typename Rule, typename S, typename Values>
void update(const UpdateTable& table, std::span<const Values> groups,
            const StepControl* control, const ParameterClocks& clocks) {
  std::vector<typename Rule::template Coefficients<S>> common;
  common.reserve(groups.size());
  for (const Values& group : groups)
    common.push_back(Rule::template coefficients<S>(group, control->time));

  const std::vector<Chunk>& chunks = table.prepared()->list.chunks;
  const auto count = static_cast<std::int64_t>(chunks.size());
  const S scale = static_cast<S>(control->gradient_scale);
  parallel_for(count, bytes_of(table), [&](std::int64_t index) {
    const Chunk& chunk = chunks[static_cast<std::size_t>(index)];
    const UpdateRun& run = table.runs()[static_cast<std::size_t>(chunk.run)];
    if (run.clock >= 0 && clocks.used[run.clock] == 0) return;
    const auto group = static_cast<std::size_t>(run.group);
    const auto c = run.clock < 0 ? common[group]
                                 : Rule::template coefficients<S>(
                                       groups[group], clocks.time[run.clock]);
    for (std::int64_t i = 0; i < chunk.count; i += kTile) {
      const std::int64_t n = std::min(kTile, chunk.count - i);
      TileStreams<S> streams(table, run, chunk.begin + i, n);
      Rule::template apply<S>(streams, run, scale, n, groups[group], c);
    }
  });
}

}  // namespace

void adam(const UpdateTable& table, std::span<const formula::AdamValues> groups,
          const StepControl* control, const ParameterClocks& clocks) {
  if (control->apply == 0) return;
  if (table.weight_dtype() == DType::kFloat64)
    return update<AdamRule, double>(table, groups, control, clocks);
  update<AdamRule, float>(table, groups, control, clocks);
}

void sgd(const UpdateTable& table, std::span<const formula::SgdValues> groups,
         const StepControl* control, const ParameterClocks& clocks) {
  if (control->apply == 0) return;
  if (table.weight_dtype() == DType::kFloat64)
    return update<SgdRule, double>(table, groups, control, clocks);
  update<SgdRule, float>(table, groups, control, clocks);
}

}  // namespace ddp::cpu
