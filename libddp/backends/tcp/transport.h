/// \file
/// TcpTransport: messages of the host backends over one socket to each rank.
#pragma once

#include <string>
#include <vector>

#include "libddp/backends/host/transfers.h"
#include "libddp/backends/tcp/connect_ranks.h"
#include "libddp/backends/tcp/link.h"

namespace ddp::tcp {

class TcpTransport final : public host::Transport {
 public:
  /// `links` has one for each rank; that of this rank is empty. Splits
  /// listen on one of `ports` (empty: any).
  TcpTransport(std::vector<Link> links, std::vector<std::uint16_t> ports);

  std::unique_ptr<host::Transfers> start(const host::Bounds& bounds) override;
  std::unique_ptr<host::Transport> split(const host::Bounds& bounds,
                                         const host::Part& part) override;

  Link& link(int peer) { return links_[static_cast<std::size_t>(peer)]; }
  /// Moves what can be moved at once; returns whether anything was.
  bool progress();
  /// Sleeps until something may be moved, or for a little while.
  void sleep(Deadline deadline);

 private:
  std::vector<Link> links_;
  std::vector<std::uint16_t> ports_;
};

}  // namespace ddp::tcp
