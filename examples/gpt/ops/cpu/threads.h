/// \file
/// How many threads the CPU ops use.
#pragma once

#include <cstdint>
#include <functional>

namespace gpt {

/// Threads of one rank: OMP_NUM_THREADS (`requested`) where it is set, else
/// an equal part of the processors that this process may use among the
/// `ranks_here` ranks of the machine, at least 1. Sets OpenMP's count and
/// returns it. The ops cut BLAS products into pieces themselves, so that
/// OpenBLAS keeps to one thread in each and the two pools never compete.
int set_cpu_threads(int requested, int ranks_here);

/// Threads that parallel_for() uses.
int cpu_threads();

/// Calls body(i) for i in [0, count), spread over OpenMP's threads. Exceptions
/// must not leave `body`.
void parallel_for(std::int64_t count,
                  const std::function<void(std::int64_t)>& body);

}  // namespace gpt
