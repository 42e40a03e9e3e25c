/// \file
/// HubAddress: where rank 0 listens, as far as a rank can know beforehand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libddp/base/environment.h"

namespace ddp {

/// All hosts are tried with all ports; greeting and job token tell the right
/// one from strangers.
struct HubAddress {
  std::vector<std::string> hosts;
  std::vector<std::uint16_t> ports;  ///< 0 alone: any free one (rank 0)
  std::string token;
  /// Where the values come from, such as "MASTER_ADDR=node1,
  /// MASTER_PORT=29500", for error texts.
  std::string origin;
};

struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};

/// Reads "host:port", "[::1]:29500" or "::1" with `default_port`, with or
/// without "tcp://" and surrounding blanks. Throws InvalidArgument that quotes
/// the text.
HostAndPort parse_host_and_port(std::string_view text,
                                std::optional<std::uint16_t> default_port);

/// Throws InvalidArgument that quotes `name` unless 1 <= value <= 65535.
std::uint16_t checked_port(std::string_view name, std::int64_t value);

/// The ports of LIBDDP_PORT_RANGE ("50010-50020"), at most 64 of them,
/// starting at one that depends on `token` so that jobs spread; empty if it
/// is not set. Throws InvalidArgument that quotes a bad range.
std::vector<std::uint16_t> ports_in_range(const Environment& environment,
                                          std::string_view token);

/// `count` ports from `first` on that are valid.
std::vector<std::uint16_t> ports_from(std::uint16_t first, int count);

/// FNV-1a, the same on all machines.
std::uint64_t stable_hash(std::string_view text);

/// For the wire and for files; decode throws CorruptData.
std::string encode(const HubAddress& address);
HubAddress decode_hub_address(std::string_view bytes);

}  // namespace ddp
