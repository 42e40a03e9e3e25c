/// \file
/// How a communicator of NCCL is set up for its traffic.
#pragma once

#include <nccl.h>

#include "libddp/backends/backend.h"

namespace ddp::nccl {

/// How memory is made known to NCCL. On 2 H200 a window makes gathers faster
/// (in place, 128 MiB bf16: 309 GB/s, 231 without) but all-reduces slower
/// (221 GB/s, 286 without), so it is for the memory that is gathered.
enum class Registration {
  kNone,
  kBuffer,  ///< ncclCommRegister (NCCL >= 2.19)
  kWindow,  ///< a symmetric window (NCCL >= 2.27), else as kBuffer
};

struct Settings {
  Registration registration = Registration::kNone;
  /// Run on the stream that the caller gives, instead of on one of the
  /// communicator's: saves two events (about 2 us) where nothing is to run
  /// beside the operation.
  bool on_callers_stream = false;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
};

/// kTail: NCCL's own choice of CTAs, on the caller's stream. kHidden: those
/// CTAs, on a stream of its own, since fewer CTAs took
/// longer and slowed computation for as long (2 H200); LIBDDP_NCCL_HIDDEN_CTAS
/// bounds them. kGather: windows, and copy engines instead of CTAs where NCCL
/// has them (>= 2.28). LIBDDP_NCCL_REGISTRATION (none, buffer, window)
/// overrides the registration of all. Throws InvalidArgument naming the
/// variable for any other value.
Settings settings_for(Traffic traffic, const Environment& environment);

}  // namespace ddp::nccl
