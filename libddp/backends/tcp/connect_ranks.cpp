#include "libddp/backends/tcp/connect_ranks.h"

#include <algorithm>
#include <random>
#include <thread>

#include "kernels/core/error.h"
#include "libddp/backends/tcp/peer_listener.h"
#include "libddp/bootstrap/connect.h"
#include "libddp/bootstrap/identity.h"
#include "libddp/bootstrap/local_hosts.h"

namespace ddp::tcp {
namespace {

using namespace std::chrono_literals;

/// One address may take this long before the next one gets its turn.
constexpr auto kAttemptLimit = 3s;
constexpr auto kPause = 50ms;

struct Contact {
  std::string token;
  std::string machine;
  std::uint16_t port = 0;
  std::vector<std::string> hosts;
};

std::string random_token() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += concat(device(), ".");
  return token;
}

// Equal where loopback is one and the same.
std::string this_machine() {
  const Identity self = Identity::of_process(0, 1);
  return self.boot_id + self.namespaces;
}

std::string encode(const Contact& contact) {
  WireWriter out;
  out.text(contact.token);
  out.text(contact.machine);
  out.number(contact.port);
  out.number(static_cast<std::int64_t>(contact.hosts.size()));
  for (const std::string& host : contact.hosts) out.text(host);
  return out.take();
}

Contact decode_contact(const std::string& bytes) {
  WireReader in(bytes);
  Contact contact;
  contact.token = in.text();
  contact.machine = in.text();
  contact.port = static_cast<std::uint16_t>(in.small_number());
  for (int left = in.small_number(); left > 0; --left)
    contact.hosts.push_back(in.text());
  return contact;
}

// Loopback alone within a machine; on another one it would be that one's own.
std::vector<Tcp::endpoint> endpoints_of(const Contact& contact) {
  const bool is_here = contact.machine == this_machine();
  std::vector<Tcp::endpoint> endpoints;
  for (const std::string& host : contact.hosts) {
    const auto address = asio::ip::make_address(host);
    if (address.is_loopback()) continue;
    endpoints.emplace_back(address, contact.port);
  }
  const auto loopback = asio::ip::address(asio::ip::address_v4::loopback());
  if (is_here || endpoints.empty())
    endpoints.insert(endpoints.begin(), Tcp::endpoint(loopback, contact.port));
  return endpoints;
}

// Any rank may be busy for long, and any packet may be late.
void set_data_options(Tcp::socket& socket) {
  asio::error_code ignored;
  socket.set_option(Tcp::no_delay(true), ignored);
  socket.set_option(Tcp::socket::keep_alive(true), ignored);
}

// The descriptor stays known to the fork guard.
Link link_of(Tcp::socket socket) {
  set_data_options(socket);
  return Link(socket.release());
}

// Tries every address of one rank, again and again.
Link connect_to(const Contact& contact, const std::string& name_of_peer,
                const Greeting& greeting, const std::function<void()>& check,
                Deadline deadline) {
  asio::io_context io;
  std::string problems;
  while (true) {
    problems.clear();
    for (const Tcp::endpoint& endpoint : endpoints_of(contact)) {
      check();
      Attempt attempt = greet(io, endpoint, greeting,
                              Deadline::in(std::min<Deadline::Clock::duration>(
                                  kAttemptLimit, deadline.remaining())));
      if (attempt.answer && attempt.answer->verdict == Verdict::kWelcome)
        return link_of(std::move(*attempt.socket));
      if (attempt.answer) close_socket(*attempt.socket);
      problems += concat(
          "\n  ", name(endpoint), ": ",
          attempt.answer ? attempt.answer->explanation : attempt.problem);
    }
    DDP_EXPECT(!deadline.has_passed(), Timeout,
               "backend tcp could not connect to ", name_of_peer, " in ",
               deadline.seconds_given(), " s:", problems,
               "\nOpen these ports between the machines, or choose others "
               "with LIBDDP_PORT_RANGE=first-last");
    std::this_thread::sleep_for(
        std::min<Deadline::Clock::duration>(kPause, deadline.remaining()));
  }
}

}  // namespace

Meeting::Meeting(const std::vector<std::uint16_t>& ports)
    : token_(random_token()), listener_(std::make_unique<PeerListener>(ports)) {
  contact_ = encode({token_, this_machine(), listener_->port(), local_hosts()});
}

Meeting::~Meeting() = default;

std::vector<Link> Meeting::connect(int rank,
                                   const std::vector<std::string>& contacts,
                                   const std::vector<std::string>& names,
                                   const std::function<void()>& check,
                                   Deadline deadline) {
  const int size = static_cast<int>(contacts.size());
  listener_->serve(token_, rank, size);
  std::vector<Link> links(contacts.size());
  for (int peer = 0; peer < rank; ++peer) {
    const Contact contact = decode_contact(contacts[peer]);
    Greeting greeting;
    greeting.token = contact.token;
    greeting.rank = rank;
    greeting.world_size = size;
    links[peer] = connect_to(contact, names[peer], greeting, check, deadline);
  }
  while (true) {
    const auto missing = listener_->wait(Deadline::in(
        std::min<Deadline::Clock::duration>(kPause, deadline.remaining())));
    if (missing.empty()) break;
    check();
    std::string who;
    for (const int peer : missing)
      who += concat(who.empty() ? "" : ", ", names[peer]);
    DDP_EXPECT(!deadline.has_passed(), Timeout, names[rank],
               ": backend tcp waited ", deadline.seconds_given(),
               " s to be connected to by ", who,
               "; see what they do and whether they reach this machine");
  }
  for (auto& [peer, socket] : listener_->take())
    links[peer] = link_of(std::move(socket));
  return links;
}

}  // namespace ddp::tcp
