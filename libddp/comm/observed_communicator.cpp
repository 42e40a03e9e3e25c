#include "libddp/comm/observed_communicator.h"

#include <algorithm>

#include "libddp/comm/arguments.h"

namespace ddp {

using Clock = std::chrono::steady_clock;

ObservedCommunicator::ObservedCommunicator(std::unique_ptr<Communicator> inner,
                                           std::shared_ptr<Observer> observer)
    : inner_(std::move(inner)),
      observer_(std::move(observer)),
      side_(inner_->device()),
      anchor_(inner_->device(), /*timed=*/true) {
  anchor_.record(side_);
  anchor_.synchronize();
  anchor_time_ = Clock::now();
  last_end_ = anchor_time_;
}

Work ObservedCommunicator::observe(Operation operation, StreamView stream,
                                   const std::function<Work()>& issue) {
  operation.sequence = sequence_;
  Pending pending{.operation = operation,
                  .issued = Clock::now(),
                  .returned = {},
                  .work = {},
                  .ready = {},
                  .ended = {}};
  if (device().is_cuda()) {
    pending.ready.emplace(device(), /*timed=*/true).record(stream);
  }
  observer_->on_issue(operation, pending.issued);
  pending.work = issue();
  ++sequence_;
  pending.returned = Clock::now();
  if (device().is_cuda()) {
    pending.work.block(side_);
    pending.ended.emplace(device(), /*timed=*/true).record(side_);
  }
  const Work work = pending.work;
  pending_.push_back(std::move(pending));
  poll();
  return work;
}

void ObservedCommunicator::poll() {
  while (!pending_.empty() && pending_.front().work.is_complete()) {
    if (pending_.front().ended && !pending_.front().ended->is_complete())
      return;
    const Pending pending = std::move(pending_.front());
    pending_.pop_front();
    report(pending);
  }
}

void ObservedCommunicator::report(const Pending& pending) {
  try {
    pending.work.wait(Deadline::in(Clock::duration::zero()));
  } catch (const Error& error) {
    observer_->on_error(pending.operation, error.what());
    return;
  }
  observer_->on_complete(pending.operation, span_of(pending));
}

Work::Span ObservedCommunicator::span_of(const Pending& pending) {
  if (const auto span = pending.work.span()) return *span;
  if (!pending.ended) return {pending.issued, pending.returned};
  const TimePoint ended = time_of(*pending.ended);
  const TimePoint started = std::max(time_of(*pending.ready), last_end_);
  last_end_ = ended;
  return {std::min(started, ended), ended};
}

ObservedCommunicator::TimePoint ObservedCommunicator::time_of(
    const Event& event) const {
  const std::chrono::duration<float, std::milli> since(
      Event::elapsed_ms(anchor_, event));
  return anchor_time_ + std::chrono::duration_cast<Clock::duration>(since);
}

Work ObservedCommunicator::all_reduce(TensorView tensor, ReduceOp op,
                                      StreamView stream) {
  return observe(check_all_reduce(*this, tensor, op), stream,
                 [&] { return inner_->all_reduce(tensor, op, stream); });
}

Work ObservedCommunicator::reduce_scatter(TensorView input, TensorView output,
                                          ReduceOp op, StreamView stream) {
  return observe(check_reduce_scatter(*this, input, output, op), stream, [&] {
    return inner_->reduce_scatter(input, output, op, stream);
  });
}

Work ObservedCommunicator::all_gather(TensorView input, TensorView output,
                                      StreamView stream) {
  return observe(check_all_gather(*this, input, output), stream,
                 [&] { return inner_->all_gather(input, output, stream); });
}

Work ObservedCommunicator::broadcast(TensorView tensor, int root,
                                     StreamView stream) {
  return observe(check_broadcast(*this, tensor, root), stream,
                 [&] { return inner_->broadcast(tensor, root, stream); });
}

Work ObservedCommunicator::all_to_all(TensorView input, TensorView output,
                                      StreamView stream) {
  return observe(check_all_to_all(*this, input, output), stream,
                 [&] { return inner_->all_to_all(input, output, stream); });
}

Work ObservedCommunicator::send(TensorView tensor, int to, StreamView stream) {
  return observe(check_send(*this, tensor, to), stream,
                 [&] { return inner_->send(tensor, to, stream); });
}

Work ObservedCommunicator::recv(TensorView tensor, int from,
                                StreamView stream) {
  return observe(check_recv(*this, tensor, from), stream,
                 [&] { return inner_->recv(tensor, from, stream); });
}

Work ObservedCommunicator::barrier(StreamView stream) {
  return observe({}, stream, [&] { return inner_->barrier(stream); });
}

std::unique_ptr<Communicator> ObservedCommunicator::split(int color, int key) {
  auto part = inner_->split(color, key);
  if (part == nullptr) return nullptr;
  return std::make_unique<ObservedCommunicator>(std::move(part), observer_);
}

}  // namespace ddp
