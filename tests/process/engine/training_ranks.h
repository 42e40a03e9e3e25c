/// \file
/// Forked ranks that train something small through DataParallel.
#pragma once

#include <functional>
#include <string>

#include "libddp/engine/data_parallel.h"
#include "tests/process/bootstrap/forked_ranks.h"

namespace ddp::test {

constexpr int kSteps = 5;

/// A small model whose gradients fill two buckets, over backend tcp.
struct Training {
  /// Meets at `port` of this machine; collectives may take 2 s.
  Training(int rank, int size, int port);

  /// Backward and step. `in_backward` is called before the first gradient
  /// is complete.
  void step(const std::function<void()>& in_backward = [] {});
  /// "weight 0 is <value>".
  std::string result();

  World world;
  DataParallel dp;
};

}  // namespace ddp::test
