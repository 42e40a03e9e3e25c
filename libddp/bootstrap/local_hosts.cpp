#include "libddp/bootstrap/local_hosts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "libddp/base/unique_handle.h"

namespace ddp {
namespace {

std::string text_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof(v4));
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else if (address.sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof(v6));
    // A link-local address means nothing without the other side's interface.
    if (!IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr))
      ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

}  // namespace

std::vector<std::string> local_hosts() {
  std::vector<std::string> hosts;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) == 0) {
    const UniqueHandle<ifaddrs*, ::freeifaddrs> owner(list);
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      const bool is_usable = one->ifa_addr != nullptr &&
                             (one->ifa_flags & IFF_UP) != 0 &&
                             (one->ifa_flags & IFF_LOOPBACK) == 0;
      if (!is_usable) continue;
      auto text = text_of(*one->ifa_addr);
      if (!text.empty()) hosts.push_back(std::move(text));
    }
  }
  // IPv4 first: it is the one that is everywhere set up.
  std::stable_partition(hosts.begin(), hosts.end(),
                        [](const std::string& host) {
                          return host.find(':') == std::string::npos;
                        });
  hosts.push_back("127.0.0.1");
  return hosts;
}

}  // namespace ddp
