/// \file
/// FailureWatch: calls a function when another rank fails, while it lives.
#pragma once

#include <utility>

#include "libddp/bootstrap/world.h"

namespace ddp {

/// Owns one callback of a world's control plane. After its destructor the
/// callback is not running and will not be called.
class FailureWatch {
 public:
  FailureWatch(const World& world, ControlPlane::FailureCallback callback)
      : world_(world), id_(world_.control().on_failure(std::move(callback))) {}
  ~FailureWatch() { world_.control().remove_callback(id_); }
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

 private:
  World world_;  // keeps the control plane alive
  int id_;
};

}  // namespace ddp
