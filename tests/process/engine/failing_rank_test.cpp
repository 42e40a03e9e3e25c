// One of four ranks fails in the midst of training: what the others raise.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include "kernels/core/error.h"
#include "tests/process/engine/training_ranks.h"

namespace ddp::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kRanks = 4;
constexpr int kVictim = 2;
constexpr int kFatalStep = 3;

// Trains; the victim calls `fail` in the backward of the fatal step.
std::string train(int rank, int port, const std::function<void()>& fail) {
  Training training(rank, kRanks, port);
  for (int step = 0; step < kSteps; ++step) {
    const bool is_fatal = rank == kVictim && step == kFatalStep;
    training.step([&] {
      if (is_fatal) fail();
    });
  }
  return training.result();
}

class FailingRank : public testing::Test {
 protected:
  void start(const std::function<void()>& fail) {
    const int port = free_port();
    ranks_.emplace(kRanks, [=](int rank) { return train(rank, port, fail); });
  }

  // All ranks but the victim: each raises one of `kinds` in time and says who,
  // where, when and in what.
  void expect_errors_of_others(const testing::Matcher<std::string>& kinds) {
    const Deadline deadline = Deadline::in(30s);
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == kVictim) continue;
      const Outcome outcome = ranks_->wait(rank, deadline);
      EXPECT_EQ(outcome.exit_code, 1) << "rank " << rank;
      EXPECT_THAT(outcome.text,
                  AllOf(kinds, HasSubstr(victim()), HasSubstr("of step 3"),
                        HasSubstr("all_reduce"), HasSubstr("bucket ")))
          << "rank " << rank;
    }
  }

  // "rank 2 (host, pid 4711)".
  std::string victim() const {
    char host[256] = {};
    EXPECT_EQ(::gethostname(host, sizeof host - 1), 0);
    return concat("rank ", kVictim, " (", host, ", pid ", ranks_->pid(kVictim),
                  ")");
  }

  std::optional<ForkedRanks> ranks_;
};

TEST_F(FailingRank, ThatThrowsIsNamedByTheOthers) {
  start([] { throw CorruptData("shard 3 is torn"); });
  expect_errors_of_others(StartsWith("PeerFailure: "));
  const Outcome outcome = ranks_->wait(kVictim, Deadline::in(10s));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.text, "CorruptData: shard 3 is torn");
}

TEST_F(FailingRank, ThatIsKilledIsNamedByTheOthers) {
  start([] { ::raise(SIGKILL); });
  expect_errors_of_others(StartsWith("PeerFailure: "));
  EXPECT_EQ(ranks_->wait(kVictim, Deadline::in(10s)).signal, SIGKILL);
}

TEST_F(FailingRank, ThatIsStoppedIsNamedByTheOthersWhenTheyTimeOut) {
  start([] { ::raise(SIGSTOP); });
  // Who hears of another's timeout before its own raises that.
  expect_errors_of_others(
      AnyOf(StartsWith("Timeout: "), StartsWith("PeerFailure: ")));
}

TEST_F(FailingRank, ThatExitsIsNamedByTheOthers) {
  start([] { ::_exit(7); });
  expect_errors_of_others(StartsWith("PeerFailure: "));
  EXPECT_EQ(ranks_->wait(kVictim, Deadline::in(10s)).exit_code, 7);
}

}  // namespace
}  // namespace ddp::test
