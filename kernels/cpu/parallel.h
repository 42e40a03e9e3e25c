/// \file
/// A loop over independent pieces of work on OpenMP's threads.
#pragma once

#include <cstdint>

namespace ddp::cpu {

/// Fewer bytes than this stay on the caller's thread: waking the others costs
/// about what one core needs to move them.
inline constexpr std::int64_t kParallelBytes = 256 * 1024;

/// Calls body(i) for i in [0, count), on OpenMP's threads if `bytes` of
/// memory traffic are worth it. Pieces do not depend on the thread count, so
/// results do not either. OpenMP obeys OMP_NUM_THREADS and, without it, the
/// affinity mask.
template <typename Body>
void parallel_for(std::int64_t count, std::int64_t bytes, const Body& body) {
// Thread sanitizer does not see the barriers of an OpenMP run-time that is
// not instrumented, and would report each region's start and end as a race.
#if !defined(__SANITIZE_THREAD__)
  if (count > 1 && bytes >= kParallelBytes) {
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
#endif
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace ddp::cpu
