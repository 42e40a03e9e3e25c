#include "libddp/bootstrap/hub_address.h"

#include <algorithm>
#include <charconv>

#include "kernels/core/error.h"
#include "libddp/bootstrap/wire_format.h"

namespace ddp {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || rest != end) return std::nullopt;
  return value;
}

struct Parts {
  std::string_view host;
  std::string_view port;
};

/// Splits at the colon that precedes the port. A bare IPv6 address has more
/// than one colon and no port.
Parts split(std::string_view text) {
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return {};
    const auto rest = text.substr(close + 1);
    return {text.substr(1, close - 1),
            rest.starts_with(':') ? rest.substr(1) : rest};
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos ||
      text.find(':', colon + 1) != std::string_view::npos)
    return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace

HostAndPort parse_host_and_port(std::string_view text,
                                std::optional<std::uint16_t> default_port) {
  constexpr std::string_view kScheme = "tcp://";
  auto rest = trimmed(text);
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  const auto [host, port_text] = split(rest);
  DDP_EXPECT(!host.empty() && (!port_text.empty() || default_port),
             InvalidArgument, "\"", text,
             "\" is no address; expected "
             "tcp://host:port or tcp://[ipv6]:port");
  if (port_text.empty()) return {std::string(host), *default_port};
  const auto port = whole_number(port_text);
  DDP_EXPECT(port, InvalidArgument, "\"", text, "\" has no port number after ",
             "the host; expected tcp://host:port");
  return {std::string(host), checked_port(text, *port)};
}

std::uint16_t checked_port(std::string_view name, std::int64_t value) {
  DDP_EXPECT(value >= 1 && value <= 65535, InvalidArgument, name, ": port ",
             value, " is outside 1 to 65535");
  return static_cast<std::uint16_t>(value);
}

std::vector<std::uint16_t> ports_in_range(const Environment& environment,
                                          std::string_view token) {
  constexpr std::int64_t kMaxPorts = 64;
  const auto text = environment.get("LIBDDP_PORT_RANGE");
  if (!text) return {};
  const auto dash = text->find('-');
  const auto first = whole_number(trimmed(text->substr(0, dash)));
  const auto last = dash == std::string::npos
                        ? first
                        : whole_number(trimmed(text->substr(dash + 1)));
  DDP_EXPECT(first && last && *first >= 1 && *first <= *last && *last <= 65535,
             InvalidArgument, "LIBDDP_PORT_RANGE=\"", *text,
             "\" is no range of ports; expected such as 50010-50020");
  const auto size = *last - *first + 1;
  const auto start = static_cast<std::int64_t>(
      stable_hash(token) % static_cast<std::uint64_t>(size));
  std::vector<std::uint16_t> ports;
  for (std::int64_t i = 0; i < std::min(size, kMaxPorts); ++i)
    ports.push_back(static_cast<std::uint16_t>(*first + (start + i) % size));
  return ports;
}

std::vector<std::uint16_t> ports_from(std::uint16_t first, int count) {
  std::vector<std::uint16_t> ports;
  for (int port = first; port < first + count && port <= 65535; ++port)
    ports.push_back(static_cast<std::uint16_t>(port));
  return ports;
}

std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211u;
  }
  return hash;
}

std::string encode(const HubAddress& address) {
  WireWriter out;
  out.number(static_cast<std::int64_t>(address.hosts.size()));
  for (const auto& host : address.hosts) out.text(host);
  out.number(static_cast<std::int64_t>(address.ports.size()));
  for (const auto port : address.ports) out.number(port);
  out.text(address.token);
  out.text(address.origin);
  return out.take();
}

HubAddress decode_hub_address(std::string_view bytes) {
  WireReader in(bytes);
  HubAddress address;
  for (auto left = in.number(); left > 0; --left)
    address.hosts.push_back(in.text());
  for (auto left = in.number(); left > 0; --left)
    address.ports.push_back(static_cast<std::uint16_t>(in.number()));
  address.token = in.text();
  address.origin = in.text();
  return address;
}

}  // namespace ddp
