// However a training program ends: silence, no hang, and its own exit code.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "kernels/core/error.h"
#include "tests/process/engine/training_ranks.h"

namespace ddp::test {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 3;

// SGD with lr 1/2 and the mean gradient (0 + 1 + 2) / 3 = 1, from 1.
std::string trained() { return concat("weight 0 is ", 1 - 0.5 * kSteps); }

// Reachable to the end, and never destroyed.
Training* start(int rank, int port) {
  static Training* training = nullptr;
  training = new Training(rank, kRanks, port);
  for (int step = 0; step < kSteps; ++step) training->step();
  return training;
}

void expect_quiet_success(ForkedRanks& ranks) {
  for (const Outcome& outcome : ranks.wait_all(Deadline::in(30s))) {
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.text, trained());
    EXPECT_EQ(outcome.log, "");
  }
}

TEST(Endings, ReturningWithoutDestroyingAnythingIsQuiet) {
  const int port = free_port();
  ForkedRanks ranks(kRanks,
                    [=](int rank) { return start(rank, port)->result(); });
  expect_quiet_success(ranks);
}

TEST(Endings, DestroyingOnRankZeroOnlyIsQuiet) {
  const int port = free_port();
  ForkedRanks ranks(kRanks, [=](int rank) {
    Training* const training = start(rank, port);
    const std::string result = training->result();
    if (rank == 0) delete training;
    return result;
  });
  expect_quiet_success(ranks);
}

TEST(Endings, TheExitCodeOfTheProgramIsKept) {
  const int port = free_port();
  ForkedRanks ranks(kRanks, [=](int rank) -> std::string {
    Training* const training = start(rank, port);
    const std::string result = training->result();
    // A code other than 0 is a failure to those who still work.
    training->world.control().exchange("end", "", Deadline::in(5s));
    std::exit(result == trained() ? 10 + rank : 1);
  });
  const auto outcomes = ranks.wait_all(Deadline::in(30s));
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(outcomes.at(size_t(rank)).exit_code, 10 + rank);
    EXPECT_EQ(outcomes.at(size_t(rank)).log, "");
  }
}

TEST(Endings, AnExceptionInTheMidstOfAStepEndsAllRanks) {
  const int port = free_port();
  ForkedRanks ranks(kRanks, [=](int rank) {
    Training training(rank, kRanks, port);
    for (int step = 0; step < kSteps; ++step) {
      training.step([&] {
        if (rank == 1 && step == 2) throw NonFinite("the loss is NaN");
      });
    }
    return training.result();
  });
  const auto outcomes = ranks.wait_all(Deadline::in(30s));
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcomes.at(1).text, "NonFinite: the loss is NaN");
  for (const int rank : {0, 2})
    EXPECT_THAT(outcomes.at(size_t(rank)).text,
                testing::AllOf(testing::StartsWith("PeerFailure: "),
                               testing::HasSubstr("rank 1 ")));
}

// What a forked child may do: nothing, and it is told so.
int child_of_rank(Training* training) {
  int refusals = 0;
  try {
    (void)training->dp.communicator().barrier(StreamView::cpu());
  } catch (const InvalidArgument&) {
    ++refusals;
  }
  try {
    training->world.control().exchange("child", "", Deadline::in(1s));
  } catch (const InvalidArgument&) {
    ++refusals;
  }
  delete training;
  return refusals;
}

TEST(Endings, AForkedChildIsInertAndTheParentTrainsOn) {
  const int port = free_port();
  ForkedRanks ranks(kRanks, [=](int rank) {
    auto* const training = new Training(rank, kRanks, port);
    training->step();
    const pid_t child = ::fork();
    if (child == 0) std::exit(child_of_rank(training));
    int status = 0;
    ::waitpid(child, &status, 0);
    for (int step = 1; step < kSteps; ++step) training->step();
    const std::string result = training->result();
    delete training;
    DDP_EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 2, Error,
               "the child ended with status ", status);
    return result;
  });
  expect_quiet_success(ranks);
}

}  // namespace
}  // namespace ddp::test
