#include "libddp/comm/recorded_communicator.h"

#include <gmock/gmock.h>

#include "libddp/backends/backend.h"

namespace ddp {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RecordedCommunicator, HashesAndRemembersWhatWasIssued) {
  const auto worlds = make_thread_worlds(1);
  const StreamView cpu = StreamView::cpu();
  RecordedCommunicator one(make_communicator(worlds[0]));
  RecordedCommunicator other(make_communicator(worlds[0]));
  EXPECT_EQ(one.recent(), "no operation yet");
  float values[3] = {1, 2, 3};
  const TensorView view{values, 3, DType::kFloat32, Device::cpu()};
  one.all_reduce(view, ReduceOp::kSum, cpu).block(cpu);
  EXPECT_EQ(one.recent(), "#0 all_reduce(sum) of 3 float32");
  EXPECT_NE(one.hash(), other.hash());
  other.all_reduce(view, ReduceOp::kSum, cpu).block(cpu);
  EXPECT_EQ(one.hash(), other.hash());
  one.all_reduce(view, ReduceOp::kMax, cpu).block(cpu);
  other.all_reduce(view, ReduceOp::kMin, cpu).block(cpu);
  EXPECT_NE(one.hash(), other.hash());
  for (int i = 0; i < 20; ++i) one.barrier(cpu).block(cpu);
  EXPECT_THAT(one.recent(), HasSubstr("#21 barrier"));
  EXPECT_THAT(one.recent(), Not(HasSubstr("#1 ")));
}

}  // namespace
}  // namespace ddp
