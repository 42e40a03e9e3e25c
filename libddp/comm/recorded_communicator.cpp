#include "libddp/comm/recorded_communicator.h"

#include "libddp/comm/arguments.h"

namespace ddp {
namespace {
constexpr std::size_t kRemembered = 8;
}

RecordedCommunicator::RecordedCommunicator(std::unique_ptr<Communicator> inner)
    : inner_(std::move(inner)) {}

void RecordedCommunicator::record(Operation operation) {
  operation.sequence = sequence_++;
  hash_.add(operation);
  recent_.push_back(operation);
  if (recent_.size() > kRemembered) recent_.pop_front();
}

std::string RecordedCommunicator::recent() const {
  if (recent_.empty()) return "no operation yet";
  std::string text;
  for (const Operation& operation : recent_)
    text += (text.empty() ? "" : "; ") + fingerprint(operation);
  return text;
}

Work RecordedCommunicator::all_reduce(TensorView tensor, ReduceOp op,
                                      StreamView stream) {
  record(check_all_reduce(*this, tensor, op));
  return inner_->all_reduce(tensor, op, stream);
}

Work RecordedCommunicator::reduce_scatter(TensorView input, TensorView output,
                                          ReduceOp op, StreamView stream) {
  record(check_reduce_scatter(*this, input, output, op));
  return inner_->reduce_scatter(input, output, op, stream);
}

Work RecordedCommunicator::all_gather(TensorView input, TensorView output,
                                      StreamView stream) {
  record(check_all_gather(*this, input, output));
  return inner_->all_gather(input, output, stream);
}

Work RecordedCommunicator::broadcast(TensorView tensor, int root,
                                     StreamView stream) {
  record(check_broadcast(*this, tensor, root));
  return inner_->broadcast(tensor, root, stream);
}

Work RecordedCommunicator::all_to_all(TensorView input, TensorView output,
                                      StreamView stream) {
  record(check_all_to_all(*this, input, output));
  return inner_->all_to_all(input, output, stream);
}

Work RecordedCommunicator::send(TensorView tensor, int to, StreamView stream) {
  record(check_send(*this, tensor, to));
  return inner_->send(tensor, to, stream);
}

Work RecordedCommunicator::recv(TensorView tensor, int from,
                                StreamView stream) {
  record(check_recv(*this, tensor, from));
  return inner_->recv(tensor, from, stream);
}

Work RecordedCommunicator::barrier(StreamView stream) {
  record({.kind = OperationKind::kBarrier});
  return inner_->barrier(stream);
}

std::unique_ptr<Communicator> RecordedCommunicator::split(int color, int key) {
  return inner_->split(color, key);
}

Buffer RecordedCommunicator::allocate(std::size_t bytes) {
  return inner_->allocate(bytes);
}

void RecordedCommunicator::abort(const std::string& reason) noexcept {
  inner_->abort(reason);
}

}  // namespace ddp
