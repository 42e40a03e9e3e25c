#include "examples/gpt/ops/cpu/kernels.h"

namespace gpt {

namespace baseline {
const Kernels& table();
}
#ifdef GPT_HAS_X86_LEVELS
namespace avx2 {
const Kernels& table();
}
namespace avx512 {
const Kernels& table();
}
#endif

std::vector<const Kernels*> runnable_kernels() {
  std::vector<const Kernels*> tables;
#ifdef GPT_HAS_X86_LEVELS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    tables.push_back(&avx512::table());
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    tables.push_back(&avx2::table());
#endif
  tables.push_back(&baseline::table());
  return tables;
}

const Kernels& kernels() {
  static const Kernels& best = *runnable_kernels().front();
  return best;
}

}  // namespace gpt
