// Ranks whose collectives part without hanging are found by the step vote,
// before the update. Runs over MPI, which lets floats and integers meet.
#include <gmock/gmock.h>

#include "tests/support/ranks.h"
#include "tests/support/training.h"

namespace ddp::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Vote, OperationsThatDifferStopTheUpdateOnEveryRank) {
  run_ranks(2, [](World& world) {
    DataParallel dp(world, {{.name = "a"}});
    float data[2] = {1, 1};
    dp.communicator()
        .all_reduce({data, 2,
                     world.rank() == 0 ? DType::kFloat32 : DType::kInt32,
                     {}},
                    ReduceOp::kSum, StreamView::cpu())
        .block(StreamView::cpu());
    std::string text = "nothing was thrown";
    try {
      give(dp, 0, {1.0});
      dp.step({}, StreamView::cpu());
    } catch (const InvalidArgument& error) {
      text = error.what();
    }
    EXPECT_THAT(text, AllOf(HasSubstr("all_reduce(sum) of 2 float32"),
                            HasSubstr("all_reduce(sum) of 2 int32"),
                            HasSubstr("the update was not applied")));
    EXPECT_EQ(values_of(dp.weight(0))[0], 0.0);
  });
}

}  // namespace
}  // namespace ddp::test
