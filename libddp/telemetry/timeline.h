/// \file
/// Timeline: what ran when, for people who look at a trace.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace ddp {

struct TimelineOptions {
  /// Shown as the process of the trace.
  int rank = 0;
  /// Spans that are kept; older ones make room. About 150 bytes each.
  std::size_t most_spans = std::size_t{1} << 16;
};

/// Keeps spans of time in a ring: collectives by CommLane, and whatever else
/// is added, such as "forward". Thread-safe; an add() is one short lock.
class Timeline {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Span {
    std::string lane;  ///< shown as a thread of the trace, such as "comm"
    std::string name;
    TimePoint started;
    TimePoint ended;
    std::uint64_t bytes = 0;     ///< 0: not a transfer
    std::uint64_t sequence = 0;  ///< of a collective
    std::string error;           ///< empty: it succeeded
  };

  /// Throws InvalidArgument if no span is to be kept.
  explicit Timeline(const TimelineOptions& options = {});

  void add(Span span);

  /// Oldest first by the time they were added.
  std::vector<Span> spans() const;
  /// How many were pushed out by younger ones.
  std::uint64_t dropped() const;

  /// The spans in the JSON that chrome://tracing and ui.perfetto.dev open:
  /// times in microseconds of the host's steady clock, so that traces of the
  /// ranks of one machine fit together; a rank is a process, a lane a thread.
  std::string trace_json() const;
  /// Writes trace_json() to `path`, whole or not at all. Throws Error with
  /// the system's reason.
  void write_trace(const std::string& path) const;

 private:
  const TimelineOptions options_;
  mutable std::mutex mutex_;
  std::vector<Span> ring_;  // guarded by mutex_, as are the next two
  std::uint64_t added_ = 0;
};

}  // namespace ddp
