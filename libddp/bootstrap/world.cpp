#include "libddp/bootstrap/world.h"

#include <algorithm>
#include <utility>

#include "kernels/core/error.h"
#include "libddp/bootstrap/exit_hooks.h"
#include "libddp/bootstrap/world_state.h"

namespace ddp {

World::State::~State() {
  const bool is_unwinding = std::uncaught_exceptions() > exceptions_at_start_;
  if (exit_hook != 0) remove_exit_hook(exit_hook);
  close(is_unwinding ? "an exception ended its world" : "");
}

void World::State::close(const std::string& failure) noexcept {
  if (std::exchange(is_closed_, true) || !rendezvous.control) return;
  if (!failure.empty() || rendezvous.control->failure())
    note_failure_for_exit();
  if (failure.empty()) {
    rendezvous.control->leave();
  } else {
    rendezvous.control->announce_failure(ErrorKind::kPeerFailure, failure);
  }
}

std::shared_ptr<World::State> World::State::make() {
  return {new State, [](State* state) {
            if (state->guard_.is_in_maker()) delete state;
          }};
}

void count_nodes(World::State& state) {
  const int node = state.self().node;
  state.local_size = 0;
  state.node_count = 0;
  for (const auto& peer : state.peers) {
    state.local_size += peer.node == node ? 1 : 0;
    state.node_count = std::max(state.node_count, peer.node + 1);
  }
}

World::World(std::shared_ptr<State> state) : state_(std::move(state)) {}

int World::rank() const noexcept { return state_->identity_rank; }
int World::size() const noexcept {
  return static_cast<int>(state_->peers.size());
}
int World::local_rank() const noexcept { return state_->self().local_rank; }
int World::local_size() const noexcept { return state_->local_size; }
int World::node() const noexcept { return state_->self().node; }
int World::node_count() const noexcept { return state_->node_count; }
Device World::device() const noexcept { return state_->self().device; }
const std::vector<Peer>& World::peers() const noexcept { return state_->peers; }
LaunchSource World::source() const noexcept { return state_->source; }
std::chrono::milliseconds World::collective_timeout() const noexcept {
  return state_->collective_timeout;
}
ControlPlane& World::control() const noexcept {
  return *state_->rendezvous.control;
}
Store& World::store() const noexcept { return *state_->rendezvous.store; }
const Environment& World::environment() const noexcept {
  return state_->environment;
}
std::optional<int> World::mpi_communicator() const noexcept {
  return state_->rendezvous.mpi_communicator;
}

std::string World::describe(int rank) const {
  if (rank < 0 || rank >= size()) return concat("rank ", rank);
  const auto& peer = state_->peers[static_cast<std::size_t>(rank)];
  return concat("rank ", rank, " (", peer.host, ", pid ", peer.pid, ")");
}

}  // namespace ddp
