/// \file
/// The backend of device memory, over NCCL.
#pragma once

#include "libddp/backends/backend.h"

namespace ddp {

/// Collective; the unique id travels over the world's control plane. Throws
/// Unavailable in a build without CUDA, InvalidArgument if this rank computes
/// on the CPU.
std::unique_ptr<Communicator> make_nccl(const World& world, Traffic traffic);

}  // namespace ddp
