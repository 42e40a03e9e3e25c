#include "examples/gpt/ops/cpu/threads.h"

#include <omp.h>

#include <algorithm>

namespace gpt {

int set_cpu_threads(int requested, int ranks_here) {
  // omp_get_num_procs() obeys the affinity mask.
  const int fair = omp_get_num_procs() / std::max(ranks_here, 1);
  const int threads = requested > 0 ? requested : std::max(fair, 1);
  omp_set_num_threads(threads);
  return threads;
}

int cpu_threads() { return omp_get_max_threads(); }

void parallel_for(std::int64_t count,
                  const std::function<void(std::int64_t)>& body) {
  if (count <= 1 || cpu_threads() == 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace gpt
