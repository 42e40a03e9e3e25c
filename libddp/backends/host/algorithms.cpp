#include "libddp/backends/host/algorithms.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/core/error.h"
#include "libddp/backends/host/reduce_elements.h"

namespace ddp::host {
namespace {

// Messages of operations that differ in kind, type, reduction or position
// have different tags, so they never meet: what would be wrong numbers is a
// timeout. 15 bits, which every MPI allows.
int tag_of(const Operation& operation, int phase) {
  const bool is_collective = operation.is_collective();
  const auto kind = is_collective ? operation.kind : OperationKind::kSend;
  const auto position =
      is_collective ? static_cast<int>(operation.sequence % 32) : 0;
  return phase | static_cast<int>(kind) << 1 |
         static_cast<int>(operation.dtype) << 4 |
         static_cast<int>(operation.reduce_op) << 8 | position << 10;
}

// Elements of one slice of one piece.
std::int64_t slice_elements(int ranks, DType dtype) {
  const std::size_t bytes = std::max(
      kPieceBytes / static_cast<std::size_t>(ranks), kLeastMessageBytes);
  return static_cast<std::int64_t>(bytes / size_of(dtype));
}

void copy(TensorView to, TensorView from) {
  if (to.numel != 0 && to.data != from.data)
    std::memcpy(to.data, from.data, to.bytes());
}

// Where each rank's slice of a piece lies.
class Slices {
 public:
  // One run of elements, cut among the ranks as evenly as possible.
  static Slices of_run(TensorView run, int ranks) {
    return Slices(run, ranks, 0, run.numel);
  }
  // Elements [begin, begin + numel) of each of `ranks` equal slices.
  static Slices of_slices(TensorView whole, int ranks, std::int64_t begin,
                          std::int64_t numel) {
    Slices slices(whole, ranks, begin, numel);
    slices.stride_ = whole.numel / ranks;
    return slices;
  }
  TensorView operator[](int rank) const {
    if (stride_ >= 0) return whole_.slice(rank * stride_ + begin_, numel_);
    const std::int64_t base = numel_ / ranks_;
    const std::int64_t longer = numel_ % ranks_;
    return whole_.slice(rank * base + std::min<std::int64_t>(rank, longer),
                        base + (rank < longer ? 1 : 0));
  }

 private:
  Slices(TensorView whole, int ranks, std::int64_t begin, std::int64_t numel)
      : whole_(whole), ranks_(ranks), begin_(begin), numel_(numel) {}

  TensorView whole_;
  int ranks_;
  std::int64_t begin_;
  std::int64_t numel_;
  std::int64_t stride_ = -1;
};

// Sends slice r to rank r, receives this rank's slice from all others, and
// reduces. Two of these alternate, so that one travels while one is summed.
class ReducingExchange {
 public:
  ReducingExchange(const Bounds& bounds, const Operation& operation,
                   std::int64_t most_elements)
      : bounds_(bounds),
        operation_(operation),
        stride_((static_cast<std::size_t>(most_elements) *
                     size_of(operation.dtype) +
                 63) /
                64 * 64),
        scratch_(new char[stride_ * bounds.group->size]),
        transfers_(bounds.transport->start(bounds)) {}

  // A message that could not be cancelled may still arrive in the scratch
  // memory when somebody calls MPI, so that memory is left to the process.
  ~ReducingExchange() {
    if (transfers_->outlives_itself()) (void)scratch_.release();
  }
  ReducingExchange(const ReducingExchange&) = delete;
  ReducingExchange& operator=(const ReducingExchange&) = delete;

  void post(Slices slices) {
    const int self = bounds_.group->rank;
    const int size = bounds_.group->size;
    own_ = slices[self];
    // Peers in an order of each rank's own, so that not all send to one.
    for (int step = 1; step < size; ++step) {
      const int from = (self + size - step) % size;
      const int to = (self + step) % size;
      if (own_.numel != 0)
        transfers_->receive(part(from), own_.bytes(), from,
                            tag_of(operation_, 0));
      const TensorView outgoing = slices[to];
      if (outgoing.numel != 0)
        transfers_->send(outgoing.data, outgoing.bytes(), to,
                         tag_of(operation_, 0));
    }
  }

  void finish(TensorView result) {
    transfers_->wait();
    if (own_.numel == 0) return;
    std::vector<const void*> sources;
    for (int rank = 0; rank < bounds_.group->size; ++rank)
      sources.push_back(rank == bounds_.group->rank ? own_.data : part(rank));
    reduce_elements(result.data, sources, own_.numel, own_.dtype,
                    operation_.reduce_op, bounds_.group->size);
  }

 private:
  char* part(int rank) const { return scratch_.get() + stride_ * rank; }

  const Bounds& bounds_;
  const Operation& operation_;
  std::size_t stride_;
  std::unique_ptr<char[]> scratch_;
  std::unique_ptr<Transfers> transfers_;
  TensorView own_;
};

// Sends this rank's slice to all others and receives theirs in place.
void post_gather(Transfers& transfers, const Group& group,
                 const Operation& operation, TensorView own,
                 const Slices& slices) {
  for (int step = 1; step < group.size; ++step) {
    const int from = (group.rank + group.size - step) % group.size;
    const int to = (group.rank + step) % group.size;
    const TensorView incoming = slices[from];
    if (incoming.numel != 0)
      transfers.receive(incoming.data, incoming.bytes(), from,
                        tag_of(operation, 1));
    if (own.numel != 0)
      transfers.send(own.data, own.bytes(), to, tag_of(operation, 1));
  }
}

// Two of each, used in turn.
template <typename T>
class Pair {
 public:
  template <typename... Args>
  explicit Pair(Args&&... args) : first_(args...), second_(args...) {}
  T& operator[](std::int64_t k) { return k % 2 == 0 ? first_ : second_; }

 private:
  T first_;
  T second_;
};

class TwoTransfers {
 public:
  explicit TwoTransfers(const Bounds& bounds)
      : first_(bounds.transport->start(bounds)),
        second_(bounds.transport->start(bounds)) {}
  Transfers& operator[](std::int64_t k) {
    return k % 2 == 0 ? *first_ : *second_;
  }

 private:
  std::unique_ptr<Transfers> first_;
  std::unique_ptr<Transfers> second_;
};

std::int64_t pieces_of(std::int64_t numel, std::int64_t piece) {
  return (numel + piece - 1) / piece;
}

}  // namespace

std::string describe_tag(int tag) {
  const auto kind = static_cast<OperationKind>(tag >> 1 & 7);
  if (kind == OperationKind::kSend) {
    return concat("send of ", name(static_cast<DType>(tag >> 4 & 15)));
  }
  std::string text(name(kind));
  if (kind == OperationKind::kAllReduce ||
      kind == OperationKind::kReduceScatter)
    text += concat("(", name(static_cast<ReduceOp>(tag >> 8 & 3)), ")");
  if (kind != OperationKind::kBarrier)
    text += concat(" of ", name(static_cast<DType>(tag >> 4 & 15)));
  return concat(text, ", #", tag >> 10 & 31, " modulo 32");
}

void all_reduce(const Bounds& bounds, const Operation& operation,
                TensorView tensor) {
  const Group& group = *bounds.group;
  const std::int64_t slice = std::min(slice_elements(group.size, tensor.dtype),
                                      pieces_of(tensor.numel, group.size));
  const std::int64_t piece = slice * group.size;
  const std::int64_t pieces = piece == 0 ? 0 : pieces_of(tensor.numel, piece);
  const auto slices_of = [&](std::int64_t k) {
    return Slices::of_run(
        tensor.slice(k * piece, std::min(piece, tensor.numel - k * piece)),
        group.size);
  };
  Pair<ReducingExchange> reducing(bounds, operation, slice);
  TwoTransfers gathering(bounds);
  if (pieces > 0) reducing[0].post(slices_of(0));
  for (std::int64_t k = 0; k < pieces; ++k) {
    if (k + 1 < pieces) reducing[k + 1].post(slices_of(k + 1));
    const Slices slices = slices_of(k);
    reducing[k].finish(slices[group.rank]);
    gathering[k].wait();  // that of piece k - 2
    post_gather(gathering[k], group, operation, slices[group.rank], slices);
  }
  gathering[pieces].wait();
  gathering[pieces + 1].wait();
}

void reduce_scatter(const Bounds& bounds, const Operation& operation,
                    TensorView input, TensorView output) {
  const int size = bounds.group->size;
  const std::int64_t piece =
      std::min(slice_elements(size, input.dtype), output.numel);
  const std::int64_t pieces = piece == 0 ? 0 : pieces_of(output.numel, piece);
  const auto numel_of = [&](std::int64_t k) {
    return std::min(piece, output.numel - k * piece);
  };
  Pair<ReducingExchange> reducing(bounds, operation, piece);
  const auto post = [&](std::int64_t k) {
    reducing[k].post(Slices::of_slices(input, size, k * piece, numel_of(k)));
  };
  if (pieces > 0) post(0);
  for (std::int64_t k = 0; k < pieces; ++k) {
    if (k + 1 < pieces) post(k + 1);
    reducing[k].finish(output.slice(k * piece, numel_of(k)));
  }
}

void all_gather(const Bounds& bounds, const Operation& operation,
                TensorView input, TensorView output) {
  const Group& group = *bounds.group;
  const std::int64_t piece =
      std::min(slice_elements(group.size, input.dtype), input.numel);
  const std::int64_t pieces = piece == 0 ? 0 : pieces_of(input.numel, piece);
  TwoTransfers gathering(bounds);
  for (std::int64_t k = 0; k < pieces; ++k) {
    const std::int64_t numel = std::min(piece, input.numel - k * piece);
    gathering[k].wait();
    post_gather(gathering[k], group, operation, input.slice(k * piece, numel),
                Slices::of_slices(output, group.size, k * piece, numel));
  }
  copy(output.slice(input.numel * group.rank, input.numel), input);
  gathering[pieces].wait();
  gathering[pieces + 1].wait();
}

void broadcast(const Bounds& bounds, const Operation& operation,
               TensorView tensor) {
  const Group& group = *bounds.group;
  const int root = operation.peer;
  const std::int64_t slice = slice_elements(group.size, tensor.dtype);
  const std::int64_t piece = slice * group.size;
  const std::int64_t pieces = pieces_of(tensor.numel, piece);
  TwoTransfers scattering(bounds);
  TwoTransfers gathering(bounds);
  // The root hands out slices and everyone passes his on: 2 (W-1)/W of the
  // bytes on the root's line, where sending all to each is W-1 times them.
  for (std::int64_t k = 0; k < pieces; ++k) {
    const Slices slices = Slices::of_run(
        tensor.slice(k * piece, std::min(piece, tensor.numel - k * piece)),
        group.size);
    scattering[k].wait();
    for (int to = 0; group.rank == root && to < group.size; ++to) {
      const TensorView part = slices[to];
      if (to != root && part.numel != 0)
        scattering[k].send(part.data, part.bytes(), to, tag_of(operation, 0));
    }
    const TensorView own = slices[group.rank];
    if (group.rank != root && own.numel != 0) {
      scattering[k].receive(own.data, own.bytes(), root, tag_of(operation, 0));
      scattering[k].wait();
    }
    gathering[k].wait();
    for (int step = 1; step < group.size; ++step) {
      const int from = (group.rank + group.size - step) % group.size;
      const int to = (group.rank + step) % group.size;
      const TensorView incoming = slices[from];
      if (group.rank != root && incoming.numel != 0)
        gathering[k].receive(incoming.data, incoming.bytes(), from,
                             tag_of(operation, 1));
      if (to != root && own.numel != 0)
        gathering[k].send(own.data, own.bytes(), to, tag_of(operation, 1));
    }
  }
  for (const int k : {0, 1}) {
    scattering[k].wait();
    gathering[k].wait();
  }
}

void all_to_all(const Bounds& bounds, const Operation& operation,
                TensorView input, TensorView output) {
  const Group& group = *bounds.group;
  const std::int64_t count = input.numel / group.size;
  const std::int64_t piece =
      std::min(slice_elements(group.size, input.dtype), count);
  const std::int64_t pieces = piece == 0 ? 0 : pieces_of(count, piece);
  TwoTransfers transfers(bounds);
  for (std::int64_t k = 0; k < pieces; ++k) {
    const std::int64_t numel = std::min(piece, count - k * piece);
    transfers[k].wait();
    for (int step = 1; step < group.size; ++step) {
      const int from = (group.rank + group.size - step) % group.size;
      const int to = (group.rank + step) % group.size;
      const TensorView incoming = output.slice(count * from + k * piece, numel);
      const TensorView outgoing = input.slice(count * to + k * piece, numel);
      transfers[k].receive(incoming.data, incoming.bytes(), from,
                           tag_of(operation, 0));
      transfers[k].send(outgoing.data, outgoing.bytes(), to,
                        tag_of(operation, 0));
    }
  }
  copy(output.slice(count * group.rank, count),
       input.slice(count * group.rank, count));
  transfers[0].wait();
  transfers[1].wait();
}

void send(const Bounds& bounds, const Operation& operation, TensorView tensor) {
  const std::int64_t piece = slice_elements(1, tensor.dtype);
  TwoTransfers transfers(bounds);
  // An empty tensor is one empty message: the receiver waits for it.
  for (std::int64_t k = 0; k == 0 || k * piece < tensor.numel; ++k) {
    const TensorView part =
        tensor.slice(k * piece, std::min(piece, tensor.numel - k * piece));
    transfers[k].wait();
    transfers[k].send(part.data, part.bytes(), operation.peer,
                      tag_of(operation, 0));
  }
  transfers[0].wait();
  transfers[1].wait();
}

void receive(const Bounds& bounds, const Operation& operation,
             TensorView tensor) {
  const std::int64_t piece = slice_elements(1, tensor.dtype);
  TwoTransfers transfers(bounds);
  for (std::int64_t k = 0; k == 0 || k * piece < tensor.numel; ++k) {
    const TensorView part =
        tensor.slice(k * piece, std::min(piece, tensor.numel - k * piece));
    transfers[k].wait();
    transfers[k].receive(part.data, part.bytes(), operation.peer,
                         tag_of(operation, 0));
  }
  transfers[0].wait();
  transfers[1].wait();
}

// Dissemination (Hensgen, Finkel, Manber 1988): after round i a rank knows
// that the 2^(i+1) - 1 ranks before it have come.
void barrier(const Bounds& bounds, const Operation& operation) {
  const Group& group = *bounds.group;
  for (int distance = 1; distance < group.size; distance *= 2) {
    const int to = (group.rank + distance) % group.size;
    const int from = (group.rank + group.size - distance) % group.size;
    const auto transfers = bounds.transport->start(bounds);
    transfers->receive(nullptr, 0, from, tag_of(operation, 0));
    transfers->send(nullptr, 0, to, tag_of(operation, 0));
    transfers->wait();
  }
}

}  // namespace ddp::host
