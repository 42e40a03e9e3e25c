#include "libddp/telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

#include "kernels/core/error.h"

namespace ddp {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Metrics, WritesWhatPrometheusReads) {
  Metrics metrics;
  metrics.counter("ddp_bytes_total", "Bytes sent.", {{"op", "all_reduce"}})
      .add(1048576);
  metrics.counter("ddp_bytes_total", "", {{"op", "all_gather"}}).add(0.5);
  metrics.gauge("ddp_loss", "Mean loss.").set(-1.25);
  EXPECT_EQ(metrics.prometheus(),
            "# HELP ddp_bytes_total Bytes sent.\n"
            "# TYPE ddp_bytes_total counter\n"
            "ddp_bytes_total{op=\"all_gather\"} 0.5\n"
            "ddp_bytes_total{op=\"all_reduce\"} 1048576\n"
            "# HELP ddp_loss Mean loss.\n"
            "# TYPE ddp_loss gauge\n"
            "ddp_loss -1.25\n");
}

TEST(Metrics, OneNameAndLabelsAreOneNumber) {
  Metrics metrics;
  metrics.counter("a", "", {{"x", "1"}, {"y", "2"}}).add(3);
  metrics.counter("a", "", {{"y", "2"}, {"x", "1"}}).add(4);
  EXPECT_EQ(metrics.counter("a", "", {{"x", "1"}, {"y", "2"}}).value(), 7);
}

TEST(Metrics, EscapesTexts) {
  Metrics metrics;
  metrics.gauge("a", "back\\slash\nline \"q\"", {{"l", "\"\\\n"}}).set(1);
  EXPECT_EQ(metrics.prometheus(),
            "# HELP a back\\\\slash\\nline \"q\"\n"
            "# TYPE a gauge\n"
            "a{l=\"\\\"\\\\\\n\"} 1\n");
}

TEST(Metrics, WritesWhatIsNoNumber) {
  Metrics metrics;
  metrics.gauge("a", "").set(std::numeric_limits<double>::quiet_NaN());
  metrics.gauge("b", "").set(std::numeric_limits<double>::infinity());
  metrics.gauge("c", "").set(-std::numeric_limits<double>::infinity());
  const std::string text = metrics.prometheus();
  EXPECT_THAT(text, HasSubstr("\na NaN\n"));
  EXPECT_THAT(text, HasSubstr("\nb +Inf\n"));
  EXPECT_THAT(text, HasSubstr("\nc -Inf\n"));
}

TEST(Metrics, StaysWithinItsBoundAndSaysSo) {
  Metrics metrics(2);
  for (int i = 0; i < 5; ++i)
    metrics.counter("a", "", {{"i", std::to_string(i)}}).add();
  metrics.gauge("b", "").set(1);
  metrics.counter("a", "", {{"i", "1"}}).add();
  const std::string text = metrics.prometheus();
  EXPECT_THAT(text, HasSubstr("a{i=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("a{i=\"1\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("i=\"2\"")));
  EXPECT_THAT(text, Not(HasSubstr("\nb ")));
  EXPECT_THAT(text, HasSubstr("libddp_dropped_series 4\n"));
}

TEST(Metrics, RefusesBadNamesAndAnotherType) {
  Metrics metrics;
  EXPECT_THROW(metrics.counter("", ""), InvalidArgument);
  EXPECT_THROW(metrics.counter("1a", ""), InvalidArgument);
  EXPECT_THROW(metrics.counter("a-b", ""), InvalidArgument);
  EXPECT_THROW(metrics.counter("a", "", {{"b:c", "1"}}), InvalidArgument);
  metrics.counter("a:b", "");
  try {
    metrics.gauge("a:b", "");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"a:b\" is a counter, not a gauge"));
  }
}

TEST(Metrics, CountsFromManyThreads) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) {
        metrics.counter("a", "").add();
        if (n % 100 == 0) metrics.prometheus();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(metrics.counter("a", "").value(), 4000);
}

}  // namespace
}  // namespace ddp
