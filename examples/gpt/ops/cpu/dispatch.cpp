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

const Kernels& kernels() {
#ifdef GPT_HAS_X86_LEVELS
  static const Kernels& best = [&]() -> const Kernels& {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      return avx512::table();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
      return avx2::table();
    return baseline::table();
  }();
  return best;
#else
  return baseline::table();
#endif
}

}  // namespace gpt
