#include <algorithm>
#include <chrono>
#include <exception>

#include "kernels/core/error.h"
#include "libddp/base/log.h"
#include "libddp/bootstrap/device_choice.h"
#include "libddp/bootstrap/exit_hooks.h"
#include "libddp/bootstrap/launcher.h"
#include "libddp/bootstrap/wire_format.h"
#include "libddp/bootstrap/world_state.h"
#include "libddp/device/stream.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;

/// What a rank tells the others first.
struct Introduction {
  Identity identity;
  DeviceView view;
};

std::string encode(const Introduction& introduction) {
  WireWriter out;
  out.text(encode(introduction.identity));
  const auto& bus_ids = introduction.view.bus_ids;
  out.number(static_cast<std::int64_t>(bus_ids.size()));
  for (const auto& bus_id : bus_ids) out.text(bus_id);
  return out.take();
}

Introduction decode_introduction(std::string_view bytes) {
  WireReader in(bytes);
  Introduction introduction;
  introduction.identity = decode_identity(in.text());
  introduction.view.rank = introduction.identity.rank;
  for (auto left = in.number(); left > 0; --left)
    introduction.view.bus_ids.push_back(in.text());
  return introduction;
}

DeviceView look_at_devices(int rank, const std::string& wanted) {
  DDP_EXPECT(wanted.empty() || wanted == "cuda" || wanted == "cpu",
             InvalidArgument, "init() was given device \"", wanted,
             "\"; expected \"cuda\", \"cpu\" or nothing");
  DeviceView view{rank, {}};
  if (wanted == "cpu") return view;
  const int visible = visible_gpu_count();
  DDP_EXPECT(visible > 0 || wanted != "cuda", Unavailable,
             "device \"cuda\" was asked for but no GPU is visible: check the "
             "driver, CUDA_VISIBLE_DEVICES, and that libddp was configured "
             "with -DLIBDDP_CUDA=ON");
  for (int index = 0; index < visible; ++index)
    view.bus_ids.push_back(bus_id(Device::cuda(index)));
  return view;
}

/// The views of the ranks on this rank's node.
std::vector<DeviceView> views_on_node(const World::State& state,
                                      const std::vector<Introduction>& all) {
  std::vector<DeviceView> views;
  for (const auto& peer : state.peers)
    if (peer.node == state.self().node)
      views.push_back(all[static_cast<std::size_t>(peer.rank)].view);
  return views;
}

Device pick_device(const World::State& state, const LaunchInfo& launch,
                   const std::vector<Introduction>& all) {
  const auto& own = all[static_cast<std::size_t>(state.identity_rank)].view;
  if (own.bus_ids.empty()) return Device::cpu();
  // Where each rank has a container of its own, only the launcher knows how
  // many share the machine.
  const bool trusts_launcher = launch.local_rank && launch.local_size &&
                               *launch.local_size >= state.local_size;
  return Device::cuda(choose_device(
      state.identity_rank,
      trusts_launcher ? *launch.local_rank : state.self().local_rank,
      trusts_launcher ? *launch.local_size : state.local_size,
      views_on_node(state, all)));
}

/// Tells the others this rank's device, and learns theirs.
void exchange_devices(World::State& state, Device device, Deadline deadline) {
  WireWriter out;
  out.number(static_cast<std::int64_t>(device.type));
  out.number(device.index);
  out.text(device.is_cuda() ? bus_id(device) : "");
  const auto all =
      state.rendezvous.control->exchange("init: device", out.take(), deadline);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    WireReader in(all[rank]);
    auto& peer = state.peers[rank];
    peer.device.type = static_cast<DeviceType>(in.number());
    peer.device.index = in.small_number();
    peer.bus_id = in.text();
  }
}

/// From here on all ranks are connected or an error is on its way to them.
void get_acquainted(World::State& state, const LaunchInfo& launch,
                    const InitOptions& options, Deadline deadline) {
  Introduction own{state.rendezvous.identity,
                   look_at_devices(state.identity_rank, options.device)};
  const auto messages = state.rendezvous.control->exchange(
      "init: identity", encode(own), deadline);
  std::vector<Introduction> all;
  std::vector<Identity> identities;
  std::vector<std::string> machines;
  for (const auto& message : messages) {
    all.push_back(decode_introduction(message));
    identities.push_back(all.back().identity);
    machines.push_back(all.back().identity.boot_id);
  }
  state.peers = place_on_nodes(identities);
  count_nodes(state);
  exchange_devices(state, pick_device(state, launch, all), deadline);
  check_equal_device_types(state.peers);
  check_distinct_devices(state.peers, machines);
}

void announce(const World::State& state, const LaunchInfo& launch) {
  const auto ranks = state.peers.size();
  log(LogLevel::kInfo,
      concat("libddp: ", ranks, ranks == 1 ? " rank on " : " ranks on ",
             state.node_count, state.node_count == 1 ? " node, " : " nodes, ",
             name(launch.source), ", ", name(state.rendezvous.method),
             " rendezvous, ", state.self().device.is_cuda() ? "cuda" : "cpu"));
  for (const auto& notice : launch.notices) log(LogLevel::kInfo, notice);
}

/// main() may return, and exit() be called, while worlds exist.
void close_at_exit(const std::shared_ptr<World::State>& state) {
  state->exit_hook = add_exit_hook([weak = std::weak_ptr(state)](int status) {
    const auto alive = weak.lock();
    if (!alive) return;
    alive->close(status == 0 ? "" : concat("it exited with status ", status));
    if (alive->rendezvous.client) alive->rendezvous.client->disconnect();
    // Else the others would see rank 0 end without a word.
    alive->rendezvous.hub.reset();
  });
}

/// Tells the others why this rank gives up.
void give_up(Rendezvous& rendezvous, const std::exception& error) {
  note_failure_for_exit();
  if (rendezvous.control)
    rendezvous.control->announce_failure(kind_of(error), error.what());
  // Those still on their way shall hear it from rank 0, too.
  if (rendezvous.hub) rendezvous.hub->wait_for_greetings(Deadline::in(1s));
}

}  // namespace

World init(const InitOptions& options) {
  const auto deadline = Deadline::in(options.timeout);
  auto state = World::State::make();
  state->environment =
      options.environment ? *options.environment : Environment::of_process();
  auto launch =
      detect_launch(state->environment, options.rank, options.world_size);
  state->source = launch.source;
  state->collective_timeout = options.collective_timeout;
  close_at_exit(state);
  try {
    meet(state->rendezvous, launch, state->environment, options, deadline);
    state->identity_rank = launch.rank;
    get_acquainted(*state, launch, options, deadline);
  } catch (const std::exception& error) {
    give_up(state->rendezvous, error);
    throw;
  }
  if (state->peers.size() > 1)
    set_log_prefix(concat("rank ", launch.rank, " on ", state->self().host));
  if (options.announce && launch.rank == 0) announce(*state, launch);
  return World(std::move(state));
}

}  // namespace ddp
