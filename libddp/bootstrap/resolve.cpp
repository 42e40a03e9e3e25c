#include "libddp/bootstrap/resolve.h"

#include <netdb.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "kernels/core/error.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;

constexpr auto kResolveLimit = 8s;

struct Lookup {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  int error = 0;
  std::vector<asio::ip::address> addresses;
};

asio::ip::address address_of(const sockaddr& socket_address) {
  if (socket_address.sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &socket_address, sizeof(v6));
    asio::ip::address_v6::bytes_type bytes;
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return asio::ip::address_v6(bytes, v6.sin6_scope_id);
  }
  sockaddr_in v4{};
  std::memcpy(&v4, &socket_address, sizeof(v4));
  asio::ip::address_v4::bytes_type bytes;
  std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
  return asio::ip::address_v4(bytes);
}

void look_up(const std::string& host, Lookup& lookup) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  std::lock_guard lock(lookup.mutex);
  lookup.error = error;
  if (error == 0) {
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
      lookup.addresses.push_back(address_of(*one->ai_addr));
    ::freeaddrinfo(found);
  }
  lookup.is_done = true;
  lookup.changed.notify_all();
}

/// getaddrinfo() has no time limit of its own and cannot be cancelled, so it
/// runs on a thread that is left behind with its own copy of everything.
std::vector<asio::ip::address> resolve_one(const std::string& host,
                                           Deadline deadline,
                                           std::string* problem) {
  const auto lookup = std::make_shared<Lookup>();
  std::thread([host, lookup] { look_up(host, *lookup); }).detach();
  std::unique_lock lock(lookup->mutex);
  const auto limit =
      std::min<Deadline::Clock::duration>(deadline.remaining(), kResolveLimit);
  if (!lookup->changed.wait_until(lock, Deadline::Clock::now() + limit,
                                  [&] { return lookup->is_done; })) {
    *problem = "the name server does not answer";
    return {};
  }
  if (lookup->error != 0) *problem = ::gai_strerror(lookup->error);
  return lookup->addresses;
}

}  // namespace

std::vector<Tcp::endpoint> resolve_all(const HubAddress& address,
                                       Deadline deadline) {
  std::vector<asio::ip::address> all;
  std::string problems;
  for (const auto& host : address.hosts) {
    std::string problem;
    for (const auto& one : resolve_one(host, deadline, &problem))
      if (std::find(all.begin(), all.end(), one) == all.end())
        all.push_back(one);
    if (!problem.empty())
      problems +=
          concat(problems.empty() ? "" : "; ", "\"", host, "\": ", problem);
  }
  DDP_EXPECT(!all.empty(), ConnectionLost, "rank 0's host cannot be resolved (",
             address.origin, "): ", problems,
             "; give a name or address that every node knows");
  std::vector<Tcp::endpoint> endpoints;
  for (const auto port : address.ports)
    for (const auto& one : all) endpoints.emplace_back(one, port);
  return endpoints;
}

}  // namespace ddp
