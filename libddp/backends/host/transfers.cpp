#include "libddp/backends/host/transfers.h"

#include "kernels/core/error.h"

namespace ddp::host {

void throw_timeout(const Bounds& bounds, const std::string& peers) {
  throw Timeout(concat(bounds.group->names[bounds.group->rank], ": ",
                       bounds.what, " waited ", bounds.deadline.seconds_given(),
                       " s for ", peers.empty() ? "the last message" : peers,
                       "; see what it does and whether all ranks issue the "
                       "same operations, or raise collective_timeout"));
}

void throw_wrong_length(const Bounds& bounds, int peer, std::size_t bytes,
                        std::size_t expected) {
  throw InvalidArgument(concat(bounds.group->names[bounds.group->rank], ": ",
                               bounds.what, " got ", bytes, " bytes from ",
                               bounds.group->names[peer], " where ", expected,
                               " were due; give equal counts on all ranks"));
}

}  // namespace ddp::host
