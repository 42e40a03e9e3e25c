/// \file
/// Schedule: the learning rate of each step, as a factor of the base rate.
#pragma once

#include <cstdint>
#include <string_view>

namespace ddp {

/// The shape between the end of warm-up and `total_steps`.
enum class Decay { kConstant, kLinear, kCosine };

/// The shape of warm-up, as DeepSpeed's WarmupLR has it.
enum class Warmup { kLinear, kLogarithmic };

/// With s the number of updates made before this one, n = warmup_steps and
/// N = total_steps:
///
///     s < n:  start + (1 - start) g,  g = s / n  or  log(s + 1) / log(n)
///     s < N:  final + (1 - final) d,  p = (s - n) / (N - n),
///             d = 1,  1 - p  or  (1 + cos(pi p)) / 2   (arXiv:1608.03983)
///     else :  final (of kConstant: 1)
///
/// so the factor is 1 at s = n, and the last update, s = N - 1, still lies
/// one step above `final`. A value; any thread may use it.
struct Schedule {
  Decay decay = Decay::kCosine;
  /// Updates in all; needed by kLinear and kCosine, later ones get
  /// `final_factor`.
  std::int64_t total_steps = 0;
  /// 0: none. More tames the first steps of Adam and of large batches.
  std::int64_t warmup_steps = 0;
  Warmup warmup = Warmup::kLinear;
  /// Factor of the very first update. 0 makes it an update by nothing;
  /// 1 / warmup_steps lets it count.
  double warmup_start = 0;
  /// Where decay ends; 0.1 is usual for language models.
  double final_factor = 0;

  /// Throws InvalidArgument that names the field and its value. Call once
  /// before training; factor() relies on it.
  void check() const;
  /// REQUIRES: check() passes, step >= 0.
  double factor(std::int64_t step) const noexcept;
};

/// "constant", "linear", "cosine".
std::string_view name(Decay decay) noexcept;
/// The inverse of name(). Throws InvalidArgument that lists the choices.
Decay parse_decay(std::string_view text);

/// How the base rate follows the size of the global batch.
enum class RateScaling {
  kNone,
  /// Rate proportional to the batch: SGD (P. Goyal et al., "Accurate, large
  /// minibatch SGD", 2017, arXiv:1706.02677), together with warm-up.
  kLinear,
  /// To its square root: keeps the variance of the update (A. Krizhevsky,
  /// arXiv:1404.5997); usual for Adam.
  kSquareRoot,
};

/// The rate for `global_batch` (samples of one update over all ranks and
/// micro-batches), given one that was tuned at `base_batch`. Throws
/// InvalidArgument if a batch is not positive.
double scale_rate(double base_rate, std::int64_t base_batch,
                  std::int64_t global_batch, RateScaling scaling);

}  // namespace ddp
