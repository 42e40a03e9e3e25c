#include "libddp/bootstrap/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "kernels/core/error.h"
#include "libddp/bootstrap/file_store.h"
#include "libddp/bootstrap/local_hosts.h"
#include "libddp/bootstrap/memory_control_plane.h"
#include "libddp/bootstrap/memory_store.h"
#include "libddp/bootstrap/mpi_rendezvous.h"
#include "libddp/bootstrap/tcp_control_plane.h"
#include "libddp/bootstrap/tcp_store.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;

std::string random_token() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += concat(device(), ".");
  return token;
}

/// Brings a rank to the hub, and rank 0 the hub up.
class Host {
 public:
  Host(Rendezvous& rendezvous, Deadline deadline)
      : rendezvous_(rendezvous), deadline_(deadline) {}

  /// Rank 0 only. Returns the port.
  std::uint16_t start_hub(const HubAddress& address) {
    HubOptions options;
    options.token = address.token;
    options.identity = rendezvous_.identity;
    options.ports = address.ports;
    options.origin = address.origin;
    rendezvous_.hub = std::make_unique<Hub>(options);
    return rendezvous_.hub->port();
  }

  /// Starts a hub whose address the others are then told.
  HubAddress start_told_hub(HubAddress address) {
    address.token += random_token();
    address.ports = {start_hub(address)};
    address.hosts = local_hosts();
    address.origin = concat("rank 0 on ", rendezvous_.identity.host);
    return address;
  }

  void connect(HubAddress address, Deadline deadline) {
    const auto& identity = rendezvous_.identity;
    if (rendezvous_.hub) {
      address.hosts = {"127.0.0.1", "::1"};
      address.ports = {rendezvous_.hub->port()};
    }
    Greeting greeting;
    greeting.rank = identity.rank;
    greeting.world_size = identity.world_size;
    greeting.identity = encode(identity);
    auto& client = rendezvous_.client;
    client = std::make_shared<HubClient>(address, greeting, deadline);
    rendezvous_.store = std::make_shared<TcpStore>(client);
    rendezvous_.control = std::make_shared<TcpControlPlane>(client);
  }

  void meet_over_tcp(const HubAddress& address) {
    if (rendezvous_.identity.rank == 0) start_hub(address);
    connect(address, deadline_);
  }

  void meet_over_file(const MeetingPlan& plan) {
    if (rendezvous_.identity.rank == 0) {
      FileStore file(plan.path, plan.hub.token, FileStore::Role::kFounder);
      const auto address = start_told_hub(plan.hub);
      file.set(kHubKey, encode(address));
      return connect(address, deadline_);
    }
    FileStore file(plan.path, plan.hub.token, FileStore::Role::kMember);
    // A file that an earlier run left leads nowhere: read it again until rank
    // 0 has put a new one in its place.
    for (;;) {
      const auto address = decode_hub_address(file.get(kHubKey, deadline_));
      try {
        return connect(address,
                       Deadline::in(std::min<Deadline::Clock::duration>(
                           1s, deadline_.remaining())));
      } catch (const ConnectionLost&) {
        if (deadline_.has_passed()) throw;
      }
    }
  }

  void meet_over_mpi(const MpiMeeting& meeting, const HubAddress& address) {
    const auto told = broadcast_over_mpi(
        meeting, [&] { return encode(start_told_hub(address)); }, deadline_);
    connect(decode_hub_address(told), deadline_);
  }

 private:
  static constexpr const char* kHubKey = "hub";
  Rendezvous& rendezvous_;
  Deadline deadline_;
};

void be_alone(Rendezvous& rendezvous) {
  rendezvous.store = std::make_shared<MemoryStore>();
  rendezvous.control = std::move(make_memory_control_planes(1, [&](int) {
                                   return describe(rendezvous.identity);
                                 }).front());
}

/// A process outside the world still greets, so that the others hear of it
/// from rank 0; then it throws.
[[noreturn]] void meet_as_outsider(Host& host, const LaunchInfo& launch,
                                   const MeetingPlan& plan, Deadline deadline) {
  if (plan.method == MeetingMethod::kTcp) {
    try {
      host.connect(plan.hub, Deadline::in(std::min<Deadline::Clock::duration>(
                                 3s, deadline.remaining())));
    } catch (const ConnectionLost&) {
      // Rank 0 cannot tell them; what follows is said here all the same.
    }
  }
  check_rank(launch);
  throw InvalidArgument(concat("rank ", launch.rank, " is not in the world"));
}

}  // namespace

void meet(Rendezvous& rendezvous, LaunchInfo& launch,
          const Environment& environment, const InitOptions& options,
          Deadline deadline) {
  const auto plan = plan_meeting(
      launch, environment,
      {.init_method = options.init_method,
       .has_mpi = has_mpi(),
       .mpi_speaks_pmi = mpi_speaks_pmi(),
       .is_mpi_running = is_mpi_running(),
       .has_mpi_communicator = options.mpi_communicator.has_value(),
       .parent_pid = ::getppid()});
  rendezvous.method = plan.method;
  std::optional<MpiMeeting> mpi;
  if (plan.method == MeetingMethod::kMpi) {
    mpi = meet_over_mpi(launch, environment, options.mpi_communicator);
    rendezvous.mpi_communicator = mpi->communicator;
    launch.rank = mpi->rank;
    launch.world_size = mpi->size;
  }
  rendezvous.identity = Identity::of_process(launch.rank, launch.world_size);
  Host host(rendezvous, deadline);
  if (launch.rank < 0 || launch.rank >= launch.world_size)
    meet_as_outsider(host, launch, plan, deadline);
  switch (plan.method) {
    case MeetingMethod::kNone: be_alone(rendezvous); break;
    case MeetingMethod::kTcp: host.meet_over_tcp(plan.hub); break;
    case MeetingMethod::kFile: host.meet_over_file(plan); break;
    case MeetingMethod::kMpi: host.meet_over_mpi(*mpi, plan.hub); break;
  }
}

}  // namespace ddp
