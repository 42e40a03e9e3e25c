#include "libddp/base/version.h"

namespace ddp {

const char* version() noexcept { return LIBDDP_VERSION; }

}  // namespace ddp
