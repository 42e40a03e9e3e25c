#include "tests/unit/kernels/machine.h"

namespace ddp::test {
Machine& machine() { return cpu_machine(); }
}  // namespace ddp::test
