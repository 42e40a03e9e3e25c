#include "libddp/telemetry/comm_lane.h"

#include <utility>

namespace ddp {

CommLane::CommLane(std::shared_ptr<Timeline> timeline, std::string lane)
    : timeline_(std::move(timeline)), lane_(std::move(lane)) {}

void CommLane::on_issue(const Operation& operation,
                        Timeline::TimePoint issued) {
  issued_[operation.sequence] = issued;
}

void CommLane::on_complete(const Operation& operation, Work::Span span) {
  issued_.erase(operation.sequence);
  timeline_->add(span_of(operation, span));
}

void CommLane::on_error(const Operation& operation, std::string_view text) {
  const auto now = std::chrono::steady_clock::now();
  const auto issued = issued_.extract(operation.sequence);
  Timeline::Span span =
      span_of(operation, {issued.empty() ? now : issued.mapped(), now});
  span.error = text;
  timeline_->add(std::move(span));
}

Timeline::Span CommLane::span_of(const Operation& operation,
                                 Work::Span when) const {
  return {.lane = lane_,
          .name = std::string(name(operation.kind)),
          .started = when.started,
          .ended = when.ended,
          .bytes = operation.bytes(),
          .sequence = operation.sequence,
          .error = {}};
}

}  // namespace ddp
