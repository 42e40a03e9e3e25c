/// \file
/// PeerList: the same run of elements in the memory of several ranks.
#pragma once

#include <cstdint>

namespace ddp {

/// Most ranks whose memory one kernel reads or writes directly. Domains with
/// more ranks move their buckets through a Communicator instead.
inline constexpr int kMaxPeers = 16;

/// Pointers to 1..kMaxPeers copies of one run of elements, in rank order.
///
/// As sources of a gradient they are summed in that order in fp32 (fp64 for
/// fp64 elements), so the sum is the same on every rank. As destinations of a
/// weight each receives the same bits; entry 0 is the caller's own copy.
struct PeerList {
  void* data[kMaxPeers] = {};
  std::int32_t count = 0;

  static PeerList one(void* pointer) noexcept {
    PeerList list;
    list.data[0] = pointer;
    list.count = 1;
    return list;
  }
};

}  // namespace ddp
