/// \file
/// Meeting: how the ranks of a group come by a connection to each other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libddp/backends/tcp/link.h"
#include "libddp/base/deadline.h"

namespace ddp::tcp {

class PeerListener;

/// One meeting of one group. Every rank listens from the constructor on, ranks
/// tell each other contact() by some other way, and then all call connect():
/// each rank connects to those before it and is connected to by those behind.
///
/// A contact holds a token of its own that greetings must repeat, so that
/// neither strangers nor other meetings get in, and so that an address that
/// means another machine elsewhere (10.0.0.1 often does) is noticed.
class Meeting {
 public:
  /// Listens on the first of `ports` that is free; empty: on any. Throws
  /// ConnectionLost naming the ports when all are in use.
  explicit Meeting(const std::vector<std::uint16_t>& ports);
  ~Meeting();

  /// Where this rank listens, for the others.
  const std::string& contact() const noexcept { return contact_; }

  /// Collective over the ranks whose `contacts` are given in rank order, with
  /// their `names` for error texts; `rank` is this one. `check` is called now
  /// and then and may throw. Returns a link for each rank, empty for this
  /// one. Throws Timeout that lists who has not come, and with which
  /// addresses it was tried, after the deadline.
  std::vector<Link> connect(int rank, const std::vector<std::string>& contacts,
                            const std::vector<std::string>& names,
                            const std::function<void()>& check,
                            Deadline deadline);

 private:
  std::string contact_;
  std::string token_;
  std::unique_ptr<PeerListener> listener_;
};

}  // namespace ddp::tcp
