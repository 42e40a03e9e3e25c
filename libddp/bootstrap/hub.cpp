#include "libddp/bootstrap/hub.h"

#include <thread>

#include "kernels/core/error.h"
#include "libddp/bootstrap/connect.h"
#include "libddp/bootstrap/hub_server.h"

namespace ddp {
namespace {

/// What keeps a port from being ours, in words. Throws if it is our own job.
std::string describe_occupant(std::uint16_t port, const HubOptions& options,
                              const asio::error_code& error) {
  if (error != asio::error::address_in_use)
    return concat("port ", port, ": ", describe(error));
  const auto answer = probe_local_port(port, options.token);
  if (!answer) return concat("port ", port, " is in use by another program");
  if (answer->verdict != Verdict::kWelcome)
    return concat("port ", port,
                  " is in use by another job: ", answer->explanation);
  throw InvalidArgument(concat(
      "rank 0 exists twice: ", describe(decode_identity(answer->identity)),
      " listens on port ", port, ", and ", describe(options.identity),
      " was to; start each rank once. If these are two jobs, give them "
      "different ports (",
      options.origin, ") or LIBDDP_JOB_TOKENs"));
}

Tcp::acceptor listen_on_first(asio::io_context& io, const HubOptions& options) {
  std::string problems;
  for (const auto port : options.ports) {
    auto listener = listen_on(io, port);
    if (listener.acceptor) return std::move(*listener.acceptor);
    problems += "\n  " + describe_occupant(port, options, listener.error);
  }
  throw ConnectionLost(
      concat(describe(options.identity), " cannot listen (", options.origin,
             "):", problems,
             "\nChoose a free port: another MASTER_PORT, LIBDDP_PORT, or "
             "LIBDDP_PORT_RANGE=first-last"));
}

}  // namespace

/// The server with the thread that runs it.
class Hub::Server {
 public:
  explicit Server(const HubOptions& options)
      : core_(std::make_shared<HubServer>(io_, listen_on_first(io_, options),
                                          options)) {
    core_->start();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Server() {
    asio::post(io_, [core = core_] { core->shut_down(); });
    thread_.join();
  }
  HubServer& core() { return *core_; }

 private:
  asio::io_context io_{1};
  std::shared_ptr<HubServer> core_;
  std::thread thread_;
};

Hub::Hub(const HubOptions& options)
    : server_(std::make_unique<Server>(options)) {}

Hub::~Hub() {
  // A forked child has no thread to join, and the sockets are the parent's.
  if (!guard_.is_in_maker()) static_cast<void>(server_.release());
}

std::uint16_t Hub::port() const noexcept { return server_->core().port(); }

void Hub::wait_for_greetings(Deadline deadline) {
  server_->core().wait_for_greetings(deadline);
}

}  // namespace ddp
