#include "libddp/comm/operation.h"

#include <cstdio>

#include "kernels/core/error.h"

namespace ddp {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014): every input bit reaches
// every output bit.
std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

bool reduces(OperationKind kind) noexcept {
  return kind == OperationKind::kAllReduce ||
         kind == OperationKind::kReduceScatter;
}

}  // namespace

std::string_view name(OperationKind kind) noexcept {
  switch (kind) {
    case OperationKind::kAllReduce: return "all_reduce";
    case OperationKind::kReduceScatter: return "reduce_scatter";
    case OperationKind::kAllGather: return "all_gather";
    case OperationKind::kBroadcast: return "broadcast";
    case OperationKind::kAllToAll: return "all_to_all";
    case OperationKind::kSend: return "send";
    case OperationKind::kRecv: return "recv";
    case OperationKind::kBarrier: return "barrier";
  }
  return "unknown";
}

std::string bytes_text(std::size_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.4g %s", value, kUnits[unit]);
  return text;
}

std::string describe(const Operation& operation) {
  if (operation.kind == OperationKind::kBarrier) return "barrier";
  return concat(name(operation.kind), " of ", bytes_text(operation.bytes()),
                " ", name(operation.dtype));
}

std::string fingerprint(const Operation& operation) {
  std::string text = concat("#", operation.sequence, " ", name(operation.kind));
  if (reduces(operation.kind))
    text += concat("(", name(operation.reduce_op), ")");
  if (operation.kind == OperationKind::kBarrier) return text;
  text += concat(" of ", operation.numel, " ", name(operation.dtype));
  if (operation.kind == OperationKind::kBroadcast)
    text += concat(" from ", operation.peer);
  return text;
}

void OperationHash::add(const Operation& operation) noexcept {
  if (!operation.is_collective()) return;
  const std::uint64_t head =
      static_cast<std::uint64_t>(operation.kind) |
      static_cast<std::uint64_t>(operation.dtype) << 8 |
      static_cast<std::uint64_t>(operation.reduce_op) << 16 |
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(operation.peer))
          << 32;
  value_ = mix(value_ ^ head);
  value_ = mix(value_ + static_cast<std::uint64_t>(operation.numel));
}

}  // namespace ddp
