/// \file
/// Checks of what callers give to a communicator: every backend makes them
/// first, so that all refuse a bad call with the same words. Each returns the
/// call as an Operation (sequence 0), or throws InvalidArgument.
#pragma once

#include "libddp/comm/operation.h"

namespace ddp {

Operation check_all_reduce(const Communicator& self, TensorView tensor,
                           ReduceOp op);
Operation check_reduce_scatter(const Communicator& self, TensorView input,
                               TensorView output, ReduceOp op);
Operation check_all_gather(const Communicator& self, TensorView input,
                           TensorView output);
Operation check_broadcast(const Communicator& self, TensorView tensor,
                          int root);
Operation check_all_to_all(const Communicator& self, TensorView input,
                           TensorView output);
Operation check_send(const Communicator& self, TensorView tensor, int to);
Operation check_recv(const Communicator& self, TensorView tensor, int from);

}  // namespace ddp
