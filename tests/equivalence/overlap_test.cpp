// Buckets are on the wire while backward computes the next ones, and what a
// step costs the host.
#include <gmock/gmock.h>

#include "libddp/telemetry/comm_lane.h"
#include "tests/support/ranks.h"
#include "tests/support/training.h"

namespace ddp::test {
namespace {

using Clock = std::chrono::steady_clock;
const StreamView kCpu = StreamView::cpu();

/// Works, in memory of its own, as a layer's backward would.
void compute_for(Milliseconds duration) {
  std::vector<float> x(1 << 14, 1.0f);
  const auto end = Clock::now() + duration;
  while (Clock::now() < end)
    for (float& value : x) value = value * 0.999f + 0.001f;
  ASSERT_GT(x[0], 0);
}

TEST(Overlap, ABucketIsOnTheWireWhileTheNextIsComputed) {
  run_ranks(2, [](World& world) {
    constexpr int kLayers = 6;
    constexpr std::int64_t kNumel = 1 << 20;
    std::vector<ParameterSpec> layers;
    for (int i = 0; i < kLayers; ++i)
      layers.push_back({.name = concat("layer", i), .shape = {kNumel}});
    auto timeline = std::make_shared<Timeline>();
    DataParallel dp(world, layers,
                    {.bucket_bytes = kNumel * 4,
                     .observer = std::make_shared<CommLane>(timeline, "comm")});
    std::vector<Timeline::Span> computed;
    for (int p = kLayers - 1; p >= 0; --p) {  // the first step
      const GradientTarget target = dp.grad(p, kCpu);
      const auto began = Clock::now();
      compute_for(Milliseconds(80));
      std::fill_n(target.tensor.as<float>(), kNumel, 1.0f);
      computed.push_back({.lane = "compute",
                          .name = "",
                          .started = began,
                          .ended = Clock::now()});
      dp.grad_ready(p, kCpu);
    }
    dp.step({}, kCpu);
    const double poll[] = {0.0};
    dp.average(poll);  // completions are noticed at the next operation
    std::vector<Timeline::Span> reduced;
    for (const Timeline::Span& span : timeline->spans())
      if (span.bytes >= kNumel * 4) reduced.push_back(span);
    ASSERT_EQ(reduced.size(), std::size_t{kLayers});
    // Bucket k is on the wire beside the computation of bucket k + 1, and the
    // first is done long before the last gradient is there.
    for (int k = 0; k + 1 < kLayers; ++k) {
      EXPECT_GE(reduced[k].started, computed[k].ended) << k;
      EXPECT_LT(reduced[k].started, computed[k + 1].ended) << k;
    }
    EXPECT_LT(reduced[0].ended, computed.back().ended);
    EXPECT_EQ(dp.overlap().bytes_launched_early, kLayers * kNumel * 4);
  });
}

}  // namespace
}  // namespace ddp::test
