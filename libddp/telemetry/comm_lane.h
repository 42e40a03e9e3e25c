/// \file
/// CommLane: the collectives of one communicator as spans of a timeline.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "libddp/comm/observer.h"
#include "libddp/telemetry/timeline.h"

namespace ddp {

/// Give one to each ObservedCommunicator: operations are numbered in each
/// from 0. Used by one thread at a time, as that communicator is; lanes of
/// one timeline may be used at once.
class CommLane final : public Observer {
 public:
  /// The timeline is shared by its lanes and by whoever writes the trace.
  CommLane(std::shared_ptr<Timeline> timeline, std::string lane);

  void on_issue(const Operation& operation,
                Timeline::TimePoint issued) override;
  void on_complete(const Operation& operation, Work::Span span) override;
  /// The span reaches from when it was issued to now.
  void on_error(const Operation& operation, std::string_view text) override;

 private:
  Timeline::Span span_of(const Operation& operation, Work::Span when) const;

  std::shared_ptr<Timeline> timeline_;
  std::string lane_;
  std::map<std::uint64_t, Timeline::TimePoint> issued_;  // in flight
};

}  // namespace ddp
