/// \file
/// MemoryControlPlane: the control plane of ranks that are threads of one
/// process.
#pragma once

#include <memory>
#include <vector>

#include "libddp/bootstrap/control_plane.h"

namespace ddp {

/// One control plane for each of `size` ranks, joined to each other; index is
/// rank. `describe` names a rank in error texts.
std::vector<std::unique_ptr<ControlPlane>> make_memory_control_planes(
    int size, const std::function<std::string(int rank)>& describe);

}  // namespace ddp
