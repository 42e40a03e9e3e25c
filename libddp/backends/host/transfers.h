/// \file
/// Transfers: messages in flight between the ranks of one communicator, and
/// the Transport that carries them. What backends of host memory share is
/// written against these two.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libddp/base/deadline.h"
#include "libddp/comm/fault.h"

namespace ddp::host {

/// Who the messages travel between.
struct Group {
  int rank = 0;
  int size = 1;
  std::vector<std::string> names;  ///< of the ranks, for error texts
};

class Transport;

/// One operation's bounds and name.
struct Bounds {
  const Group* group = nullptr;
  Transport* transport = nullptr;
  const Fault* fault = nullptr;  ///< set from outside to give up
  Deadline deadline = Deadline::never();
  std::string what;  ///< "all_reduce of 25 MiB float32"
};

/// A set of messages that are waited for together. Messages between two ranks
/// arrive in the order in which they are posted.
class Transfers {
 public:
  /// Gives up what is still in flight.
  virtual ~Transfers() = default;

  /// Bytes to or from rank `peer`; `tag` says what the message is for and is
  /// equal on both sides. REQUIRES: bytes < 2^31, 0 <= tag < 2^15.
  virtual void send(const void* data, std::size_t bytes, int peer, int tag) = 0;
  virtual void receive(void* data, std::size_t bytes, int peer, int tag) = 0;

  /// Throws what the fault holds, Timeout that names the peers that are
  /// waited for, or InvalidArgument if a message is not the one asked for.
  virtual void wait() = 0;

  /// Whether the memory of messages may still be written to after this object
  /// has been destroyed.
  virtual bool outlives_itself() const noexcept { return false; }
};

/// What a group is split into, as one rank sees it.
struct Part {
  int color = 0;  ///< negative: this rank is in none
  int key = 0;
  /// Ranks of the whole group that gave this color, in their new order.
  std::vector<int> members;
};

/// Moves messages between the ranks of a group. One thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;

  /// `bounds` must outlive what is returned.
  virtual std::unique_ptr<Transfers> start(const Bounds& bounds) = 0;

  /// One between the members of each part; null for a negative color.
  /// Collective over the whole group, whose other messages have all arrived.
  virtual std::unique_ptr<Transport> split(const Bounds& bounds,
                                           const Part& part) = 0;

  /// Messages were given up: its destructor must not talk to other ranks.
  virtual void abandon() noexcept {}
};

/// The error texts that all transports share.
[[noreturn]] void throw_timeout(const Bounds& bounds, const std::string& peers);
[[noreturn]] void throw_wrong_length(const Bounds& bounds, int peer,
                                     std::size_t bytes, std::size_t expected);

}  // namespace ddp::host
