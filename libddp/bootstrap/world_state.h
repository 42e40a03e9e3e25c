/// \file
/// What the handles of one world share. Private.
#pragma once

#include <exception>

#include "libddp/bootstrap/fork_guard.h"
#include "libddp/bootstrap/rendezvous.h"
#include "libddp/bootstrap/world.h"

namespace ddp {

struct World::State {
  State() = default;
  /// Takes leave of the others; announces a failure instead when an exception
  /// is what ends the world.
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const Peer& self() const {
    return peers[static_cast<std::size_t>(identity_rank)];
  }
  /// Once: takes leave, or announces `failure` if it is not empty.
  void close(const std::string& failure) noexcept;

  /// Lets a forked child drop its handles without touching the parent's
  /// connections.
  static std::shared_ptr<State> make();

  int identity_rank = 0;
  std::vector<Peer> peers;
  int node_count = 1;
  int local_size = 1;
  LaunchSource source = LaunchSource::kAlone;
  std::chrono::milliseconds collective_timeout{};
  Environment environment;
  Rendezvous rendezvous;
  int exit_hook = 0;  ///< of exit_hooks.h; 0 without

 private:
  ProcessGuard guard_;
  int exceptions_at_start_ = std::uncaught_exceptions();
  bool is_closed_ = false;
};

/// Counts nodes and this rank's neighbours. REQUIRES: peers and rank are set.
void count_nodes(World::State& state);

}  // namespace ddp
