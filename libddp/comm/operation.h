/// \file
/// Operation: what a rank asked of a communicator, as a value that can be
/// printed, hashed and compared with what other ranks asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libddp/comm/communicator.h"

namespace ddp {

enum class OperationKind : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kSend,
  kRecv,
  kBarrier,
};

/// "all_reduce", "send", ...
std::string_view name(OperationKind kind) noexcept;

/// One call of a Communicator. Sizes are those of the larger tensor: the
/// input of a reduce_scatter, the output of an all_gather.
struct Operation {
  OperationKind kind = OperationKind::kBarrier;
  DType dtype = DType::kFloat32;
  ReduceOp reduce_op = ReduceOp::kSum;  ///< where the kind reduces
  std::int32_t peer = -1;               ///< root, destination or source
  std::int64_t numel = 0;
  /// Position among the operations of its communicator, from 0.
  std::uint64_t sequence = 0;

  std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(numel) * size_of(dtype);
  }
  /// Whether ranks of the group must agree on it; send and recv differ.
  bool is_collective() const noexcept {
    return kind != OperationKind::kSend && kind != OperationKind::kRecv;
  }
  friend bool operator==(const Operation&, const Operation&) = default;
};

/// "all_reduce of 25 MiB float32", for error texts.
std::string describe(const Operation& operation);

/// Everything that must agree: "#17 all_reduce(sum) of 6553600 float32".
std::string fingerprint(const Operation& operation);

/// "25 MiB", "1.5 KiB", "12 B".
std::string bytes_text(std::size_t bytes);

/// A running 64-bit hash of collectives in the order they were issued: equal
/// on all ranks exactly when they issued the same ones (save for collisions,
/// one in 2^64). send and recv do not enter. One thread at a time.
class OperationHash {
 public:
  void add(const Operation& operation) noexcept;
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0x9e3779b97f4a7c15u;
};

}  // namespace ddp
