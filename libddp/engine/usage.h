/// \file
/// UsageVote: which parameters any rank used in this window.
#pragma once

#include <functional>
#include <vector>

#include "kernels/step_vote.h"
#include "libddp/comm/communicator.h"
#include "libddp/device/event.h"

namespace ddp {

/// Sums, over ranks, one flag per parameter, on the device, and keeps the
/// clocks of parameters that are not updated in every step. Flags travel from
/// a ring of page-locked memory, so the host does not wait unless it is more
/// than `capacity` windows ahead.
class UsageVote {
 public:
  UsageVote(int parameters, Communicator& communicator, int capacity);

  /// Collective: gives every rank, on the device, how many ranks used each
  /// parameter.
  void exchange(const std::function<bool(int)>& used, StreamView stream);
  /// Without exchange: every parameter counts as used.
  void set_all_used(StreamView stream);

  ParameterClocks clocks() const;

 private:
  struct Slot {
    explicit Slot(std::size_t bytes, Device device);
    Buffer flags;
    Event copied;
  };

  int parameters_;
  Communicator& communicator_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  Buffer used_;
  Buffer time_;
};

}  // namespace ddp
