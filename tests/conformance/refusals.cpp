// What every backend must refuse, and how it must fail.
#include <gmock/gmock.h>

#include <thread>

#include "libddp/comm/checked_communicator.h"
#include "tests/conformance/values.h"

namespace ddp::conformance {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <typename F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return concat(name(error.kind()), ": ", error.what());
  }
  return "no error";
}

class Refusals : public testing::TestWithParam<int> {};

TEST_P(Refusals, BadArgumentsAreNamedAndLeaveTheCommunicatorUsable) {
  run_on_ranks(GetParam(), [&](Rank& rank) {
    Communicator& communicator = rank.communicator;
    Array floats(rank, 6, DType::kFloat32);
    Array ints(rank, 6, DType::kInt32);
    EXPECT_THAT(error_of([&] {
                  (void)communicator.all_reduce(ints.view(), ReduceOp::kAverage,
                                                rank.stream);
                }),
                AllOf(HasSubstr("InvalidArgument"), HasSubstr("average"),
                      HasSubstr("int32")));
    EXPECT_THAT(error_of([&] {
                  (void)communicator.broadcast(floats.view(), rank.size(),
                                               rank.stream);
                }),
                AllOf(HasSubstr("InvalidArgument"), HasSubstr("root")));
    EXPECT_THAT(error_of([&] {
                  (void)communicator.all_gather(ints.view(), floats.view(),
                                                rank.stream);
                }),
                AllOf(HasSubstr("InvalidArgument"), HasSubstr("int32"),
                      HasSubstr("float32")));
    EXPECT_THAT(error_of([&] {
                  (void)communicator.reduce_scatter(
                      floats.view(), floats.view().slice(0, 5), ReduceOp::kSum,
                      rank.stream);
                }),
                AllOf(HasSubstr("InvalidArgument"), HasSubstr("6 elements")));
    EXPECT_THAT(error_of([&] {
                  TensorView elsewhere = floats.view();
                  elsewhere.device = Device::cuda(77);
                  (void)communicator.all_reduce(elsewhere, ReduceOp::kSum,
                                                rank.stream);
                }),
                AllOf(HasSubstr("InvalidArgument"), HasSubstr("cuda:77")));
    EXPECT_THAT(error_of([&] {
                  TensorView null = floats.view();
                  null.data = nullptr;
                  (void)communicator.all_reduce(null, ReduceOp::kSum,
                                                rank.stream);
                }),
                AllOf(HasSubstr("InvalidArgument"), HasSubstr("null")));
    communicator.barrier(rank.stream)
        .wait(Deadline::in(std::chrono::seconds(20)));
  });
}

TEST_P(Refusals, AfterAbortEveryCallThrowsTheReason) {
  run_on_ranks(GetParam(), [&](Rank& rank) {
    Array array(rank, 6, DType::kFloat32);
    rank.communicator.barrier(rank.stream)
        .wait(Deadline::in(std::chrono::seconds(20)));
    rank.communicator.abort("the test says stop");
    for (int again = 0; again < 2; ++again) {
      EXPECT_THAT(error_of([&] {
                    (void)rank.communicator.all_reduce(
                        array.view(), ReduceOp::kSum, rank.stream);
                  }),
                  HasSubstr("the test says stop"));
    }
    EXPECT_THAT(error_of([&] { (void)rank.communicator.split(0, 0); }),
                HasSubstr("the test says stop"));
  });
}

TEST_P(Refusals, AbortEndsAnOperationInFlight) {
  if (GetParam() == 1) return;  // nothing is ever in flight
  run_on_ranks(GetParam(), [&](Rank& rank) {
    if (rank.rank() == 0) return;  // never joins
    Array array(rank, 100'000, DType::kFloat32);
    array.fill([](auto) { return 1; });
    std::thread aborter([&] {
      std::this_thread::sleep_for(Milliseconds(100));
      rank.communicator.abort("enough waiting");
    });
    const auto began = std::chrono::steady_clock::now();
    EXPECT_THAT(error_of([&] {
                  rank.communicator
                      .all_reduce(array.view(), ReduceOp::kSum, rank.stream)
                      .wait(Deadline::in(std::chrono::seconds(20)));
                }),
                HasSubstr("enough waiting"));
    EXPECT_LT(std::chrono::steady_clock::now() - began,
              std::chrono::seconds(10));
    aborter.join();
  });
}

TEST_P(Refusals, ARankThatDoesNotJoinIsATimeoutOnTheOthers) {
  if (GetParam() == 1) return;  // nobody to wait for
  run_in_new_world(
      GetParam(), Milliseconds(400), Ending::kTogether, [&](Rank& rank) {
        if (rank.rank() == 0) {
          std::this_thread::sleep_for(Milliseconds(1500));
          return;
        }
        Array array(rank, 100'000, DType::kFloat32);
        array.fill([](auto) { return 1; });
        const auto began = std::chrono::steady_clock::now();
        const std::string text = error_of([&] {
          rank.communicator
              .all_reduce(array.view(), ReduceOp::kSum, rank.stream)
              .wait(Deadline::in(std::chrono::seconds(20)));
        });
        EXPECT_THAT(text, AllOf(HasSubstr("Timeout"), HasSubstr("all_reduce"),
                                HasSubstr("390.6 KiB float32"),
                                HasSubstr("0.4 s"), HasSubstr("rank ")));
        EXPECT_LT(std::chrono::steady_clock::now() - began,
                  std::chrono::seconds(5));
        EXPECT_EQ(
            error_of([&] { (void)rank.communicator.barrier(rank.stream); }),
            text);
      });
}

TEST_P(Refusals, TheFailureOfOneRankEndsTheWaitsOfTheOthers) {
  if (GetParam() == 1) return;  // nobody else to fail
  run_in_new_world(
      GetParam(), std::chrono::seconds(60), Ending::kFailed, [&](Rank& rank) {
        if (rank.rank() == 0) {
          std::this_thread::sleep_for(Milliseconds(200));
          rank.world.control().announce_failure(ErrorKind::kCorruptData,
                                                "shard 3 is torn");
          return;
        }
        Array array(rank, 100'000, DType::kFloat32);
        array.fill([](auto) { return 1; });
        const auto began = std::chrono::steady_clock::now();
        EXPECT_THAT(error_of([&] {
                      rank.communicator
                          .all_reduce(array.view(), ReduceOp::kSum, rank.stream)
                          .wait(Deadline::in(std::chrono::seconds(50)));
                    }),
                    AllOf(HasSubstr("PeerFailure"), HasSubstr("rank 0"),
                          HasSubstr("shard 3 is torn")));
        EXPECT_LT(std::chrono::steady_clock::now() - began,
                  std::chrono::seconds(20));
      });
}

TEST_P(Refusals, CheckedModeShowsBothFingerprintsOnEveryRank) {
  if (GetParam() == 1) return;  // nobody to disagree with
  run_on_ranks(GetParam(), [&](Rank& rank) {
    CheckedCommunicator checked(rank.communicator.split(0, rank.rank()),
                                rank.world);
    const int last = rank.size() - 1;
    Array array(rank, 409'600, DType::kFloat32);
    array.fill([](auto) { return 1; });
    checked.all_reduce(array.view(), ReduceOp::kSum, rank.stream)
        .block(rank.stream);
    const auto expect_both = [&](TensorView view, ReduceOp op,
                                 const char* first, const char* second) {
      EXPECT_THAT(
          error_of([&] { (void)checked.all_reduce(view, op, rank.stream); }),
          AllOf(HasSubstr("InvalidArgument"), HasSubstr(first),
                HasSubstr(second), HasSubstr("rank 0"),
                HasSubstr(concat("rank ", last))));
    };
    const bool is_odd = rank.rank() == last;
    expect_both(array.view().slice(0, is_odd ? 409'598 : 409'600),
                ReduceOp::kSum, "409600 float32", "409598 float32");
    TensorView halves = array.view();
    if (is_odd) halves.dtype = DType::kBFloat16;
    expect_both(halves, ReduceOp::kSum, "float32", "bfloat16");
    expect_both(array.view(), is_odd ? ReduceOp::kMax : ReduceOp::kSum,
                "all_reduce(sum)", "all_reduce(max)");
    // Nothing was launched, so what follows still works.
    checked.barrier(rank.stream).wait(Deadline::in(std::chrono::seconds(20)));
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Refusals, testing::ValuesIn(world_sizes()));

}  // namespace
}  // namespace ddp::conformance
