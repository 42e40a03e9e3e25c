#include "libddp/comm/arguments.h"

#include <functional>

#include "kernels/core/error.h"

namespace ddp {
namespace {

std::string who(const Communicator& self, OperationKind kind) {
  return concat("rank ", self.rank(), ": ", name(kind), " (", self.backend(),
                "): ");
}

void check_tensor(const Communicator& self, OperationKind kind,
                  const char* which, const TensorView& tensor) {
  DDP_EXPECT(tensor.device == self.device(), InvalidArgument, who(self, kind),
             which, " lies on ", name(tensor.device),
             " but the communicator moves memory of ", name(self.device()),
             "; copy it there or use a communicator of that device");
  DDP_EXPECT(tensor.numel >= 0, InvalidArgument, who(self, kind), which,
             " has ", tensor.numel, " elements");
  DDP_EXPECT(tensor.numel == 0 || tensor.data != nullptr, InvalidArgument,
             who(self, kind), which, " has ", tensor.numel,
             " elements at a null pointer");
  DDP_EXPECT(
      reinterpret_cast<std::uintptr_t>(tensor.data) % size_of(tensor.dtype) ==
          0,
      InvalidArgument, who(self, kind), which, " at ", tensor.data,
      " is not aligned to its type ", name(tensor.dtype));
}

void check_reduction(const Communicator& self, OperationKind kind, DType dtype,
                     ReduceOp op) {
  DDP_EXPECT(op != ReduceOp::kAverage || is_floating(dtype), InvalidArgument,
             who(self, kind), "average of ", name(dtype),
             " would lose its fraction; use sum and divide, or a floating "
             "type");
}

// `whole` holds one `part` for each rank.
void check_slices(const Communicator& self, OperationKind kind,
                  const char* whole_name, const TensorView& whole,
                  const char* part_name, const TensorView& part) {
  DDP_EXPECT(whole.dtype == part.dtype, InvalidArgument, who(self, kind),
             whole_name, " is ", name(whole.dtype), " and ", part_name, " ",
             name(part.dtype), "; both must have one type");
  DDP_EXPECT(whole.numel == part.numel * self.size(), InvalidArgument,
             who(self, kind), whole_name, " has ", whole.numel,
             " elements, but ", self.size(), " ranks times ", part.numel,
             " of ", part_name, " are ", part.numel * self.size(),
             "; pad to a multiple of the world size");
}

void check_peer(const Communicator& self, OperationKind kind, const char* which,
                int peer) {
  DDP_EXPECT(peer >= 0 && peer < self.size(), InvalidArgument, who(self, kind),
             which, " ", peer, " is not a rank of 0..", self.size() - 1);
}

bool overlap(const TensorView& a, const TensorView& b) {
  const auto* a_begin = static_cast<const char*>(a.data);
  const auto* b_begin = static_cast<const char*>(b.data);
  const std::less<const char*> before;
  return a.bytes() != 0 && b.bytes() != 0 &&
         before(a_begin, b_begin + b.bytes()) &&
         before(b_begin, a_begin + a.bytes());
}

// In-place use is fine where `part` is exactly this rank's slice of `whole`.
void check_overlap(const Communicator& self, OperationKind kind,
                   const TensorView& whole, const TensorView& part) {
  if (!overlap(whole, part)) return;
  const TensorView own = whole.slice(part.numel * self.rank(), part.numel);
  DDP_EXPECT(part.data == own.data, InvalidArgument, who(self, kind),
             "input and output overlap, and the smaller is not slice ",
             self.rank(), " of the larger; give that slice or other memory");
}

}  // namespace

Operation check_all_reduce(const Communicator& self, TensorView tensor,
                           ReduceOp op) {
  check_tensor(self, OperationKind::kAllReduce, "the tensor", tensor);
  check_reduction(self, OperationKind::kAllReduce, tensor.dtype, op);
  return {.kind = OperationKind::kAllReduce,
          .dtype = tensor.dtype,
          .reduce_op = op,
          .numel = tensor.numel};
}

Operation check_reduce_scatter(const Communicator& self, TensorView input,
                               TensorView output, ReduceOp op) {
  constexpr auto kKind = OperationKind::kReduceScatter;
  check_tensor(self, kKind, "input", input);
  check_tensor(self, kKind, "output", output);
  check_reduction(self, kKind, input.dtype, op);
  check_slices(self, kKind, "input", input, "output", output);
  check_overlap(self, kKind, input, output);
  return {.kind = kKind,
          .dtype = input.dtype,
          .reduce_op = op,
          .numel = input.numel};
}

Operation check_all_gather(const Communicator& self, TensorView input,
                           TensorView output) {
  constexpr auto kKind = OperationKind::kAllGather;
  check_tensor(self, kKind, "input", input);
  check_tensor(self, kKind, "output", output);
  check_slices(self, kKind, "output", output, "input", input);
  check_overlap(self, kKind, output, input);
  return {.kind = kKind, .dtype = output.dtype, .numel = output.numel};
}

Operation check_broadcast(const Communicator& self, TensorView tensor,
                          int root) {
  check_tensor(self, OperationKind::kBroadcast, "the tensor", tensor);
  check_peer(self, OperationKind::kBroadcast, "root", root);
  return {.kind = OperationKind::kBroadcast,
          .dtype = tensor.dtype,
          .peer = root,
          .numel = tensor.numel};
}

Operation check_all_to_all(const Communicator& self, TensorView input,
                           TensorView output) {
  constexpr auto kKind = OperationKind::kAllToAll;
  check_tensor(self, kKind, "input", input);
  check_tensor(self, kKind, "output", output);
  DDP_EXPECT(input.dtype == output.dtype && input.numel == output.numel,
             InvalidArgument, who(self, kKind), "input has ", input.numel, " ",
             name(input.dtype), " and output ", output.numel, " ",
             name(output.dtype), "; they must be alike");
  DDP_EXPECT(input.numel % self.size() == 0, InvalidArgument, who(self, kKind),
             input.numel, " elements do not divide among ", self.size(),
             " ranks");
  DDP_EXPECT(!overlap(input, output), InvalidArgument, who(self, kKind),
             "input and output overlap; give separate memory");
  return {.kind = kKind, .dtype = input.dtype, .numel = input.numel};
}

Operation check_send(const Communicator& self, TensorView tensor, int to) {
  check_tensor(self, OperationKind::kSend, "the tensor", tensor);
  check_peer(self, OperationKind::kSend, "destination", to);
  DDP_EXPECT(to != self.rank(), InvalidArgument,
             who(self, OperationKind::kSend), "cannot send to itself; copy");
  return {.kind = OperationKind::kSend,
          .dtype = tensor.dtype,
          .peer = to,
          .numel = tensor.numel};
}

Operation check_recv(const Communicator& self, TensorView tensor, int from) {
  check_tensor(self, OperationKind::kRecv, "the tensor", tensor);
  check_peer(self, OperationKind::kRecv, "source", from);
  DDP_EXPECT(from != self.rank(), InvalidArgument,
             who(self, OperationKind::kRecv),
             "cannot receive from itself; copy");
  return {.kind = OperationKind::kRecv,
          .dtype = tensor.dtype,
          .peer = from,
          .numel = tensor.numel};
}

}  // namespace ddp
