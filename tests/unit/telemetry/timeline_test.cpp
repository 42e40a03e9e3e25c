#include "libddp/telemetry/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "kernels/core/error.h"
#include "libddp/telemetry/comm_lane.h"

namespace ddp {
namespace {

using Json = nlohmann::json;
using std::chrono::microseconds;

Timeline::TimePoint at(std::int64_t us) {
  return Timeline::TimePoint(microseconds(us));
}

std::vector<std::string> names(const Timeline& timeline) {
  std::vector<std::string> result;
  for (const auto& span : timeline.spans()) result.push_back(span.name);
  return result;
}

TEST(Timeline, KeepsTheYoungestSpansInOrder) {
  Timeline timeline({.most_spans = 3});
  EXPECT_TRUE(timeline.spans().empty());
  for (const char* name : {"a", "b"})
    timeline.add({.lane = "l", .name = name, .error = {}});
  EXPECT_EQ(names(timeline), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(timeline.dropped(), 0u);
  for (const char* name : {"c", "d", "e"})
    timeline.add({.lane = "l", .name = name, .error = {}});
  EXPECT_EQ(names(timeline), (std::vector<std::string>{"c", "d", "e"}));
  EXPECT_EQ(timeline.dropped(), 2u);
}

TEST(Timeline, WritesChromesTrace) {
  Timeline timeline({.rank = 3});
  timeline.add({.lane = "compute",
                .name = "back\"ward",
                .started = at(1000),
                .ended = at(1500),
                .error = {}});
  timeline.add({.lane = "comm",
                .name = "all_reduce",
                .started = at(1200),
                .ended = at(1450),
                .bytes = 4096,
                .sequence = 17,
                .error = "broken"});
  const Json trace = Json::parse(timeline.trace_json());
  const Json& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0], Json::parse(R"({"ph":"M","name":"process_name",
      "pid":3,"tid":0,"args":{"name":"rank 3"}})"));
  EXPECT_EQ(events[1], Json::parse(R"({"ph":"M","name":"thread_name",
      "pid":3,"tid":0,"args":{"name":"compute"}})"));
  EXPECT_EQ(events[2], Json::parse(R"({"ph":"X","name":"back\"ward",
      "cat":"compute","pid":3,"tid":0,"ts":1000.0,"dur":500.0,
      "args":{"sequence":0}})"));
  EXPECT_EQ(events[3]["args"]["name"], "comm");
  EXPECT_EQ(events[4], Json::parse(R"({"ph":"X","name":"all_reduce",
      "cat":"comm","pid":3,"tid":1,"ts":1200.0,"dur":250.0,
      "args":{"sequence":17,"bytes":4096,"error":"broken"}})"));
}

TEST(Timeline, WritesAFile) {
  const auto path = std::filesystem::temp_directory_path() /
                    concat("libddp_timeline.", ::getpid(), ".json");
  Timeline timeline;
  timeline.write_trace(path);
  EXPECT_EQ(Json::parse(std::ifstream(path))["traceEvents"].size(), 1u);
  std::filesystem::remove(path);
  EXPECT_THROW(timeline.write_trace("/nonexistent/folder/t.json"), Error);
}

TEST(Timeline, RefusesToKeepNothing) {
  EXPECT_THROW(Timeline({.most_spans = 0}), InvalidArgument);
}

TEST(Timeline, TakesSpansFromManyThreads) {
  Timeline timeline({.most_spans = 100});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n)
        timeline.add({.lane = "l", .name = "n", .error = {}});
      timeline.trace_json();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(timeline.spans().size(), 100u);
  EXPECT_EQ(timeline.dropped(), 1900u);
}

TEST(CommLane, RecordsWhenACollectiveWasOnTheWire) {
  const auto timeline = std::make_shared<Timeline>();
  CommLane lane(timeline, "comm/tail");
  const Operation operation{.kind = OperationKind::kAllReduce,
                            .dtype = DType::kBFloat16,
                            .numel = 1000,
                            .sequence = 5};
  lane.on_issue(operation, at(10));
  EXPECT_TRUE(timeline->spans().empty());
  lane.on_complete(operation, {at(20), at(45)});
  ASSERT_EQ(timeline->spans().size(), 1u);
  const Timeline::Span span = timeline->spans()[0];
  EXPECT_EQ(span.lane, "comm/tail");
  EXPECT_EQ(span.name, "all_reduce");
  EXPECT_EQ(span.started, at(20));
  EXPECT_EQ(span.ended, at(45));
  EXPECT_EQ(span.bytes, 2000u);
  EXPECT_EQ(span.sequence, 5u);
  EXPECT_EQ(span.error, "");
}

TEST(CommLane, AFailureReachesBackToItsIssue) {
  const auto timeline = std::make_shared<Timeline>();
  CommLane lane(timeline, "comm");
  const Operation operation{.kind = OperationKind::kBarrier, .sequence = 2};
  lane.on_issue(operation, at(10));
  lane.on_error(operation, "rank 1 is gone");
  const Timeline::Span span = timeline->spans()[0];
  EXPECT_EQ(span.name, "barrier");
  EXPECT_EQ(span.started, at(10));
  EXPECT_GT(span.ended, at(10));
  EXPECT_EQ(span.error, "rank 1 is gone");
  EXPECT_EQ(span.bytes, 0u);
}

}  // namespace
}  // namespace ddp
