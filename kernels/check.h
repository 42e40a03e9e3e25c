/// \file
/// Checks that several operations share.
#pragma once

#include "kernels/core/error.h"
#include "kernels/core/tensor.h"
#include "kernels/peer_list.h"

namespace ddp {

inline void expect_floating(const char* operation, DType dtype) {
  DDP_EXPECT(is_floating(dtype), InvalidArgument, operation, ": dtype ",
             name(dtype),
             " is not floating; pass float32, float64, bfloat16 or float16");
}

inline void expect_tensor(const char* operation, const TensorView& tensor,
                          StreamView stream) {
  DDP_EXPECT(tensor.numel >= 0, InvalidArgument, operation, ": a tensor has ",
             tensor.numel, " elements; pass 0 or more");
  DDP_EXPECT(tensor.data != nullptr || tensor.numel == 0, InvalidArgument,
             operation, ": a tensor of ", tensor.numel,
             " elements has no memory; allocate it first");
  DDP_EXPECT(stream.device.is_cuda() || tensor.device.is_cpu(), InvalidArgument,
             operation, ": the tensor is on ", name(tensor.device),
             " but the stream on ", name(stream.device),
             "; pass a stream of the tensor's device");
}

inline void expect_peers(const char* operation, const char* what,
                         const PeerList& list) {
  DDP_EXPECT(list.count >= 1 && list.count <= kMaxPeers, InvalidArgument,
             operation, ": the list of ", what, "s has ", list.count,
             " entries; pass 1 to ", kMaxPeers);
}

}  // namespace ddp
