#include "libddp/data/sampler.h"

#include <algorithm>

#include "kernels/core/error.h"

namespace ddp {
namespace {

void check(const SamplerOptions& o) {
  DDP_EXPECT(o.size >= 0, InvalidArgument, "sampler: size is ", o.size,
             ", but a data set has 0 samples or more");
  DDP_EXPECT(o.world > 0, InvalidArgument, "sampler: world is ", o.world,
             ", but there must be at least one rank");
  DDP_EXPECT(o.rank >= 0 && o.rank < o.world, InvalidArgument,
             "sampler: rank is ", o.rank, ", but ranks of a world of ", o.world,
             " are 0 to ", o.world - 1);
  DDP_EXPECT(!(o.drop_last && o.padding == Padding::kNone), InvalidArgument,
             "sampler: drop_last leaves samples out and Padding::kNone asks "
             "for every sample once; choose one of them");
}

}  // namespace

DistributedSampler::DistributedSampler(const SamplerOptions& options)
    : options_((check(options), options)),
      order_(options.size, options.seed, 0) {
  begin(0, 0);
}

std::optional<Sample> DistributedSampler::next() {
  if (drawn_ == length_) {
    begin(epoch_ + 1, 0);
    return std::nullopt;
  }
  // Below size + world, so it cannot overflow for any size that fits memory.
  const std::int64_t entry = first_ + drawn_ * options_.world + options_.rank;
  ++drawn_;
  const std::int64_t wrapped = entry % options_.size;
  return Sample{options_.shuffle ? order_(wrapped) : wrapped,
                entry >= options_.size};
}

void DistributedSampler::set_epoch(std::uint64_t epoch) {
  if (epoch != epoch_) begin(epoch, 0);
}

SamplerState DistributedSampler::state() const noexcept {
  // In terms of the order, not of this rank's length: with Padding::kNone a
  // short rank must report what the longer ones do.
  const std::int64_t position = first_ + drawn_ * options_.world;
  const std::int64_t size = options_.size;
  const bool is_over =
      drawn_ > 0 && (options_.drop_last ? size - position < options_.world
                                        : position >= size);
  if (is_over) return {epoch_ + 1, 0, options_.seed};
  return {epoch_, position, options_.seed};
}

void DistributedSampler::restore(const SamplerState& state) {
  DDP_EXPECT(state.position >= 0 && state.position <= options_.size,
             InvalidArgument, "sampler: the state stands at sample ",
             state.position, ", but this data set has ", options_.size,
             "; resume with the data set that the state was saved with");
  options_.seed = state.seed;
  begin(state.epoch, state.position);
}

bool DistributedSampler::is_even() const noexcept {
  return options_.padding == Padding::kRepeat || options_.drop_last ||
         options_.size % options_.world == 0;
}

std::string DistributedSampler::notice() const {
  if (count_from(0) > 0) return {};
  return concat("sampler: rank ", options_.rank, " of ", options_.world,
                " has nothing to read: ", options_.size, " samples",
                options_.drop_last ? " with drop_last" : "",
                "; use more data or fewer ranks");
}

void DistributedSampler::begin(std::uint64_t epoch, std::int64_t position) {
  epoch_ = epoch;
  first_ = position;
  drawn_ = 0;
  length_ = count_from(position);
  order_ = Permutation(options_.size, options_.seed, epoch);
}

std::int64_t DistributedSampler::count_from(
    std::int64_t position) const noexcept {
  const std::int64_t left = options_.size - position;
  const std::int64_t world = options_.world;
  if (options_.drop_last) return left / world;
  if (options_.padding == Padding::kRepeat)
    return left / world + (left % world != 0);
  return left / world + (options_.rank < left % world);
}

}  // namespace ddp
