#include "libddp/backends/tcp/tcp.h"

#include "kernels/core/error.h"
#include "libddp/backends/host/host_communicator.h"
#include "libddp/backends/tcp/transport.h"
#include "libddp/bootstrap/hub_address.h"

namespace ddp {

std::unique_ptr<Communicator> make_tcp(const World& world, Traffic) {
  const Deadline deadline = Deadline::in(world.collective_timeout());
  host::Group group = host::group_of(world);
  const std::string& self = group.names[static_cast<std::size_t>(group.rank)];
  // Ranks of one machine begin at different ports of the range.
  const auto ports = ports_in_range(world.environment(), self);
  tcp::Meeting meeting(ports);
  const auto contacts =
      world.control().exchange("tcp backend", meeting.contact(), deadline);
  const auto check = [&] {
    if (const auto failure = world.control().failure())
      throw PeerFailure(failure->text);
  };
  auto links =
      meeting.connect(group.rank, contacts, group.names, check, deadline);
  return host::make_communicator(
      "tcp", world, std::move(group),
      std::make_unique<tcp::TcpTransport>(std::move(links), ports));
}

}  // namespace ddp
