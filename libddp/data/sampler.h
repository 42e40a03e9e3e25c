/// \file
/// DistributedSampler: which samples each rank reads, in which order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libddp/data/permutation.h"

namespace ddp {

/// What happens when the samples do not divide by the ranks.
enum class Padding {
  /// Ranks get equally many; the first samples of the order come again, as
  /// often as needed, marked as duplicates.
  kRepeat,
  /// Every sample exactly once; the last ranks get one fewer. For evaluation.
  kNone,
};

struct SamplerOptions {
  /// Samples in the data set; 0 is a data set without any.
  std::int64_t size = 0;
  int rank = 0;
  int world = 1;
  /// Equal on all ranks; another seed gives other orders.
  std::uint64_t seed = 0;
  /// false: 0, 1, 2, ... in every epoch.
  bool shuffle = true;
  /// Leave out the tail that does not divide by `world`; nothing is padded.
  bool drop_last = false;
  Padding padding = Padding::kRepeat;
};

/// Where all ranks stand: enough to go on at another world size.
struct SamplerState {
  std::uint64_t epoch = 0;
  /// Samples of the epoch's order that all ranks together have consumed.
  std::int64_t position = 0;
  std::uint64_t seed = 0;

  bool operator==(const SamplerState&) const = default;
};

struct Sample {
  std::int64_t index = 0;
  /// Padding: another draw of this pass has the same index. Leave it out of
  /// averages.
  bool is_duplicate = false;

  bool operator==(const Sample&) const = default;
};

/// The k-th draw of rank r is entry first + k * world + r of the epoch's
/// order, as in torch's DistributedSampler, so the set of samples of a global
/// batch does not depend on the world size:
///
///     order   | s0 s1 s2 s3 | s4 s5 s6 s7 | s8 s9 s0' s1' |   W = 4, N = 10
///     rank      0  1  2  3    0  1  2  3    0  1  2   3        ' duplicate
///
/// Arithmetic alone: no I/O, no communication, O(1) memory. One thread at a
/// time.
class DistributedSampler {
 public:
  /// Throws InvalidArgument that names what is wrong: size < 0, world <= 0,
  /// rank outside [0, world), drop_last with Padding::kNone.
  explicit DistributedSampler(const SamplerOptions& options);

  /// The next sample of this rank. Nothing once at the end of each pass; the
  /// call after that begins the next epoch.
  std::optional<Sample> next();

  /// Begins `epoch` at its first sample. During that very epoch it changes
  /// nothing, so a resumed pass goes on where it was.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const noexcept { return epoch_; }

  /// Draws of this rank from the start of the pass (or from where it was
  /// resumed) to its end.
  std::int64_t length() const noexcept { return length_; }
  std::int64_t remaining() const noexcept { return length_ - drawn_; }

  /// Equal on all ranks that have drawn equally often. After the last draw of
  /// the longest rank it is the start of the next epoch.
  SamplerState state() const noexcept;
  /// Goes on at `state`, which may come from another world size: no sample of
  /// the pass is repeated or lost. Takes over its seed. Throws
  /// InvalidArgument if the position is outside this data set.
  void restore(const SamplerState& state);

  const SamplerOptions& options() const noexcept { return options_; }
  /// Whether the ranks of a pass from its beginning get equally many samples.
  bool is_even() const noexcept;
  /// A sentence to show the user if this rank has nothing to read; empty
  /// otherwise.
  std::string notice() const;

 private:
  void begin(std::uint64_t epoch, std::int64_t position);
  std::int64_t count_from(std::int64_t position) const noexcept;

  SamplerOptions options_;
  std::uint64_t epoch_ = 0;
  std::int64_t first_ = 0;   // entry of the order at which this pass began
  std::int64_t length_ = 0;  // draws of this rank from there on
  std::int64_t drawn_ = 0;
  Permutation order_;
};

}  // namespace ddp
