// Ranks whose collectives part: over MPI, where unlike operations never meet,
// every rank gets a timeout that shows what each of them issued.
#include <gmock/gmock.h>

#include "tests/support/training.h"

namespace ddp::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Stall, EveryRankIsShownWhereAllRanksAre) {
  World world =
      init({.device = "cpu", .collective_timeout = std::chrono::seconds(2)});
  ASSERT_EQ(world.size(), 2);
  DataParallel dp(world, {{.name = "a", .shape = {10}}});
  std::vector<float> data(409600, 1.0f);
  const std::int64_t count = world.rank() == 0 ? 409600 : 409598;
  const Work work = dp.communicator().all_reduce(
      {data.data(), count, DType::kFloat32, {}},
      world.rank() == 0 ? ReduceOp::kSum : ReduceOp::kMax, StreamView::cpu());
  const auto began = std::chrono::steady_clock::now();
  const std::string text = error_of<Timeout>([&] {
    give(dp, 0, std::vector<double>(10, 1.0));
    dp.step({}, StreamView::cpu());
  });
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(9));
  EXPECT_THAT(text, AllOf(HasSubstr("step of step 0"),
                          HasSubstr("all_reduce(sum) of 409600 float32"),
                          HasSubstr("all_reduce(max) of 409598 float32"),
                          HasSubstr("bucket 0 of arena 0")));
  EXPECT_EQ(values_of(dp.weight(0))[0], 0.0);
}

}  // namespace
}  // namespace ddp::test
