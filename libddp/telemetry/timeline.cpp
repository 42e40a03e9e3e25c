#include "libddp/telemetry/timeline.h"

#include <map>
#include <nlohmann/json.hpp>

#include "kernels/core/error.h"
#include "libddp/data/atomic_file.h"

namespace ddp {
namespace {

using Json = nlohmann::json;

double microseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

// "M" events give names to what "X" events only number.
Json name_event(const char* what, int process, int thread,
                const std::string& name) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", process},
          {"tid", thread},
          {"args", {{"name", name}}}};
}

Json span_event(const Timeline::Span& span, int process, int thread) {
  Json arguments = {{"sequence", span.sequence}};
  if (span.bytes > 0) arguments["bytes"] = span.bytes;
  if (!span.error.empty()) arguments["error"] = span.error;
  return {{"ph", "X"},
          {"name", span.name},
          {"cat", span.lane},
          {"pid", process},
          {"tid", thread},
          {"ts", microseconds(span.started.time_since_epoch())},
          {"dur", microseconds(span.ended - span.started)},
          {"args", arguments}};
}

}  // namespace

Timeline::Timeline(const TimelineOptions& options) : options_(options) {
  DDP_EXPECT(options.most_spans > 0, InvalidArgument,
             "timeline: most_spans is 0, but must be at least 1");
}

void Timeline::add(Span span) {
  const std::lock_guard lock(mutex_);
  if (ring_.size() < options_.most_spans)
    ring_.push_back(std::move(span));
  else
    ring_[added_ % options_.most_spans] = std::move(span);
  ++added_;
}

std::vector<Timeline::Span> Timeline::spans() const {
  const std::lock_guard lock(mutex_);
  if (ring_.empty()) return {};
  // A ring that is not full yet has added_ == size: the oldest is the first.
  const auto oldest = static_cast<std::ptrdiff_t>(added_ % ring_.size());
  std::vector<Span> spans(ring_.begin() + oldest, ring_.end());
  spans.insert(spans.end(), ring_.begin(), ring_.begin() + oldest);
  return spans;
}

std::uint64_t Timeline::dropped() const {
  const std::lock_guard lock(mutex_);
  return added_ - ring_.size();
}

std::string Timeline::trace_json() const {
  const int process = options_.rank;
  Json events = Json::array();
  events.push_back(
      name_event("process_name", process, 0, concat("rank ", options_.rank)));
  std::map<std::string, int> threads;
  for (const Span& span : spans()) {
    const int next = static_cast<int>(threads.size());
    const auto [lane, is_new] = threads.try_emplace(span.lane, next);
    if (is_new)
      events.push_back(
          name_event("thread_name", process, lane->second, span.lane));
    events.push_back(span_event(span, process, lane->second));
  }
  const Json trace = {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void Timeline::write_trace(const std::string& path) const {
  const std::string text = trace_json();
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace ddp
