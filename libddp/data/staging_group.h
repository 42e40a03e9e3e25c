/// \file
/// StagingGroup: what staging needs to know of the other ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libddp/base/deadline.h"

namespace ddp {

class ControlPlane;
class World;

/// This rank among those that share its disk. `control` must outlive it.
struct StagingGroup {
  int rank = 0;
  /// The lowest rank on this machine: it copies for the others.
  int stager = 0;
  /// Such as "rank 3 (node7, pid 4711)"; for error texts.
  std::string description = "rank 0";
  ControlPlane* control = nullptr;

  bool is_stager() const noexcept { return rank == stager; }

  static StagingGroup of(const World& world);
};

}  // namespace ddp
