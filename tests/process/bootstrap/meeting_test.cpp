#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "kernels/core/error.h"
#include "libddp/bootstrap/world.h"
#include "tests/process/bootstrap/forked_ranks.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

InitOptions options(int rank, int size, const std::string& method,
                    Milliseconds timeout = 10s) {
  InitOptions result;
  result.rank = rank;
  result.world_size = size;
  result.init_method = method;
  result.device = "cpu";
  result.timeout = timeout;
  result.announce = false;
  return result;
}

std::string tcp(int port) { return concat("tcp://127.0.0.1:", port); }

InitOptions by_variables(Variables variables, Milliseconds timeout = 10s) {
  InitOptions result;
  result.environment = Environment(std::move(variables));
  result.device = "cpu";
  result.timeout = timeout;
  result.announce = false;
  return result;
}

Variables torchrun(int rank, int size, int port) {
  return {{"RANK", concat(rank)},         {"WORLD_SIZE", concat(size)},
          {"LOCAL_RANK", concat(rank)},   {"LOCAL_WORLD_SIZE", concat(size)},
          {"MASTER_ADDR", "localhost "},  {"MASTER_PORT", concat(port)},
          {"TORCHELASTIC_RUN_ID", "none"}};
}

std::string summary(const World& world) {
  const auto all =
      world.control().exchange("check", concat(world.rank()), Deadline::in(5s));
  std::string text =
      concat(world.size(), " ranks, local ", world.local_rank(), "/",
             world.local_size(), ", nodes ", world.node_count(), ", heard");
  for (const auto& one : all) text += " " + one;
  return text;
}

/// Waits for what another rank's end does to this one.
std::string wait_for_failure(const World& world, Milliseconds limit = 5s) {
  try {
    world.control().exchange("forever", "", Deadline::in(limit));
  } catch (const PeerFailure& error) {
    return error.what();
  }
  return "no failure";
}

TEST(Meeting, BringsForkedRanksTogetherOverTcp) {
  const int port = free_port();
  ForkedRanks ranks(
      3, [&](int rank) { return summary(init(options(rank, 3, tcp(port)))); });
  const auto outcomes = ranks.wait_all(Deadline::in(20s));
  for (int rank = 0; rank < 3; ++rank) {
    const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.log, "");
    EXPECT_EQ(outcome.text,
              concat("3 ranks, local ", rank, "/3, nodes 1, heard 0 1 2"));
  }
}

TEST(Meeting, BringsForkedRanksTogetherOverAFile) {
  const auto path =
      (std::filesystem::temp_directory_path() / concat("ddp-", ::getpid()))
          .string();
  // What an earlier run left must not be in the way.
  for (int run = 0; run < 2; ++run) {
    ForkedRanks ranks(3, [&](int rank) {
      if (rank == 0) std::this_thread::sleep_for(100ms);
      return summary(init(options(rank, 3, "file://" + path)));
    });
    for (const auto& outcome : ranks.wait_all(Deadline::in(20s)))
      EXPECT_THAT(outcome.text, HasSubstr("heard 0 1 2"));
  }
  std::filesystem::remove(path);
}

TEST(Meeting, ReadsTheVariablesOfTorchrunAndLeavesTheAgentsPortAlone) {
  const int port = free_port();
  ForkedRanks ranks(2, [&](int rank) {
    auto variables = torchrun(rank, 2, port);
    variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
    return summary(init(by_variables(variables)));
  });
  for (const auto& outcome : ranks.wait_all(Deadline::in(20s)))
    EXPECT_THAT(outcome.text, HasSubstr("heard 0 1"));
}

TEST(Meeting, LetsTwoJobsOfOneNodeShareAMasterPort) {
  const int port = free_port();
  // Ranks 0 and 1 of job a, then of job b.
  ForkedRanks ranks(4, [&](int child) {
    auto variables = torchrun(child % 2, 2, port);
    variables["LIBDDP_JOB_TOKEN"] = child < 2 ? "a" : "b";
    return summary(init(by_variables(variables)));
  });
  for (const auto& outcome : ranks.wait_all(Deadline::in(20s)))
    EXPECT_THAT(outcome.text, HasSubstr("heard 0 1"));
}

TEST(Meeting, ListsWhoIsMissingAtTheTimeout) {
  const int port = free_port();
  ForkedRanks ranks(4, [&](int rank) {
    if (rank == 2) return std::string("stayed away");
    return summary(init(options(rank, 4, tcp(port), 1500ms)));
  });
  const auto outcomes = ranks.wait_all(Deadline::in(20s));
  for (const int rank : {0, 1, 3}) {
    const auto& text = outcomes[static_cast<std::size_t>(rank)].text;
    EXPECT_THAT(text, AnyOf(HasSubstr("joined: 0,1,3; missing: 2"),
                            // Who heard first of another's timeout.
                            HasSubstr("PeerFailure")));
  }
  EXPECT_THAT(outcomes[0].text + outcomes[1].text + outcomes[3].text,
              HasSubstr("joined: 0,1,3; missing: 2"));
}

TEST(Meeting, ListsTheAddressesWhenRankZeroIsMissing) {
  const int port = free_port();
  ForkedRanks ranks(
      1, [&](int) { return summary(init(options(1, 2, tcp(port), 500ms))); });
  EXPECT_THAT(
      ranks.wait(0, Deadline::in(10s)).text,
      AllOf(HasSubstr("ConnectionLost"), HasSubstr("rank 1"),
            HasSubstr(concat("127.0.0.1:", port)), HasSubstr("errno 111")));
}

TEST(Meeting, TellsAllRanksOfTwoClaimantsAtOnce) {
  const int port = free_port();
  // Rank 1 twice, and rank 2 never.
  ForkedRanks ranks(3, [&](int child) {
    return summary(init(options(child == 0 ? 0 : 1, 3, tcp(port), 30s)));
  });
  for (const auto& outcome : ranks.wait_all(Deadline::in(10s))) {
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 1 exists twice"),
                                    HasSubstr(concat("pid ", ranks.pid(1))),
                                    HasSubstr(concat("pid ", ranks.pid(2)))));
  }
}

TEST(Meeting, TellsAllRanksThatTheyDisagreeOnTheWorldSize) {
  const int port = free_port();
  ForkedRanks ranks(3, [&](int rank) {
    return summary(init(options(rank, rank == 2 ? 4 : 3, tcp(port), 30s)));
  });
  for (const auto& outcome : ranks.wait_all(Deadline::in(10s)))
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("InvalidArgument"),
                                    HasSubstr("disagree on the world size"),
                                    HasSubstr("has 3"), HasSubstr("has 4")));
}

TEST(Meeting, TellsAllRanksOfOneProcessTooMany) {
  const int port = free_port();
  // Ranks 0, 1 and 4 of 4: the world cannot be complete.
  ForkedRanks ranks(3, [&](int child) {
    auto variables = torchrun(child == 2 ? 4 : child, 4, port);
    variables.erase("LOCAL_RANK");
    variables.erase("LOCAL_WORLD_SIZE");
    return summary(init(by_variables(variables, 30s)));
  });
  for (const auto& outcome : ranks.wait_all(Deadline::in(10s)))
    EXPECT_THAT(outcome.text,
                AllOf(HasSubstr("InvalidArgument"), HasSubstr("rank 4")));
}

TEST(Meeting, NoticesAKilledRankWithinASecond) {
  for (const int victim : {0, 2}) {
    const int port = free_port();
    ForkedRanks ranks(3, [&](int rank) {
      const auto world = init(options(rank, 3, tcp(port)));
      summary(world);
      if (rank == victim) {
        // Nothing that the hub sends may be on its way still.
        for (int other = 0; other < 3; ++other)
          if (other != victim)
            world.store().get(concat("ready", other), Deadline::in(5s));
        std::this_thread::sleep_for(100ms);
        ::kill(::getpid(), SIGKILL);
      }
      world.store().set(concat("ready", rank), "");
      const auto start = std::chrono::steady_clock::now();
      auto text = wait_for_failure(world);
      if (std::chrono::steady_clock::now() - start > 2s) text += " (late)";
      return text + concat(" rank ", world.control().failure()->rank);
    });
    const auto outcomes = ranks.wait_all(Deadline::in(20s));
    for (int rank = 0; rank < 3; ++rank) {
      const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
      if (rank == victim) {
        EXPECT_EQ(outcome.signal, SIGKILL);
        continue;
      }
      EXPECT_THAT(outcome.text, HasSubstr(concat("rank ", victim, " (")));
      EXPECT_THAT(outcome.text, HasSubstr("ended without leaving"));
      EXPECT_THAT(outcome.text, ::testing::Not(HasSubstr("late")));
      EXPECT_THAT(outcome.text, ::testing::EndsWith(concat(" rank ", victim)));
    }
  }
}

TEST(Meeting, NoticesRanksThatExitInTheMiddle) {
  for (const bool with_handlers : {false, true}) {
    const int port = free_port();
    ForkedRanks ranks(2, [&](int rank) -> std::string {
      const auto world = init(options(rank, 2, tcp(port)));
      summary(world);
      if (rank == 1 && with_handlers) std::exit(3);
      if (rank == 1) ::_exit(3);
      return wait_for_failure(world);
    });
    EXPECT_THAT(ranks.wait(0, Deadline::in(10s)).text,
                AllOf(HasSubstr("rank 1 ("),
                      HasSubstr(with_handlers ? "exited with status 3"
                                              : "ended without leaving")));
    EXPECT_EQ(ranks.wait(1, Deadline::in(10s)).exit_code, 3);
  }
}

TEST(Meeting, TellsTheOthersWhenAnExceptionEndsAWorld) {
  const int port = free_port();
  ForkedRanks ranks(2, [&](int rank) {
    const auto world = init(options(rank, 2, tcp(port)));
    summary(world);
    if (rank == 1) throw Error("the model is wrong");
    return wait_for_failure(world);
  });
  EXPECT_THAT(ranks.wait(0, Deadline::in(10s)).text,
              AllOf(HasSubstr("rank 1 ("), HasSubstr("an exception ended")));
  EXPECT_EQ(ranks.wait(1, Deadline::in(10s)).exit_code, 1);
}

TEST(Meeting, NamesAStoppedRankAtTheDeadline) {
  const int port = free_port();
  ForkedRanks ranks(3, [&](int rank) -> std::string {
    const auto world = init(options(rank, 3, tcp(port)));
    summary(world);
    if (rank == 1) ::raise(SIGSTOP);
    try {
      world.control().exchange("step", "", Deadline::in(500ms));
    } catch (const Timeout& error) {
      return error.what();
    }
    return "no timeout";
  });
  EXPECT_THAT(ranks.wait(2, Deadline::in(10s)).text,
              HasSubstr("joined: 0,2; missing: 1"));
  EXPECT_THAT(ranks.wait(0, Deadline::in(10s)).text, HasSubstr("missing: 1"));
}

TEST(Meeting, EndsInSilenceHoweverTheWorldIsDropped) {
  enum Way { kScope, kLeak, kOneRankOnly, kStatic };
  for (const Way way : {kScope, kLeak, kOneRankOnly, kStatic}) {
    const int port = free_port();
    ForkedRanks ranks(2, [&](int rank) {
      auto* world = new World(init(options(rank, 2, tcp(port))));
      auto text = summary(*world);
      static std::optional<World> kept;
      // Leaked, but not lost to the leak checker.
      static const World* leaked = nullptr;
      leaked = world;
      if (way == kStatic) kept = *world;
      if (way != kLeak && (way != kOneRankOnly || rank == 0)) delete world;
      EXPECT_NE(leaked, nullptr);
      return text;
    });
    for (const auto& outcome : ranks.wait_all(Deadline::in(10s))) {
      EXPECT_EQ(outcome.exit_code, 0);
      EXPECT_EQ(outcome.log, "");
    }
  }
}

TEST(Meeting, LetsTheOthersGoOnWhenARankLeaves) {
  const int port = free_port();
  ForkedRanks ranks(2, [&](int rank) {
    auto world = init(options(rank, 2, tcp(port)));
    auto text = summary(world);
    if (rank == 0) {
      // The other one ends first, and that is no failure.
      world.store().get("bye", Deadline::in(5s));
      std::this_thread::sleep_for(200ms);
      text = world.control().failure() ? "a failure" : "quiet";
    } else {
      world.store().set("bye", "");
    }
    return text;
  });
  EXPECT_EQ(ranks.wait(0, Deadline::in(10s)).text, "quiet");
  EXPECT_EQ(ranks.wait(1, Deadline::in(10s)).exit_code, 0);
}

TEST(Meeting, MeetsTwiceOnOnePort) {
  const int port = free_port();
  ForkedRanks ranks(2, [&](int rank) {
    std::string text;
    for (int turn = 0; turn < 3; ++turn)
      text = summary(init(options(rank, 2, tcp(port))));
    return text;
  });
  for (const auto& outcome : ranks.wait_all(Deadline::in(20s)))
    EXPECT_THAT(outcome.text, HasSubstr("heard 0 1"));
}

TEST(Meeting, LeavesAForkedChildNothingToUse) {
  const int port = free_port();
  ForkedRanks ranks(2, [&](int rank) -> std::string {
    auto world = std::make_optional(init(options(rank, 2, tcp(port))));
    if (rank == 0) {
      const pid_t child = ::fork();
      if (child == 0) {
        int code = 0;
        for (const auto& use : std::vector<std::function<void()>>{
                 [&] { world->store().set("a", "b"); },
                 [&] { world->store().find("a"); },
                 [&] {
                   world->control().exchange("x", "", Deadline::in(1s));
                 }}) {
          try {
            use();
          } catch (const InvalidArgument&) {
            ++code;
          }
        }
        world.reset();
        std::exit(code);  // with handlers, as Python's workers do
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      if (WEXITSTATUS(status) != 3) return "the child used the world";
    }
    return summary(*world);
  });
  for (const auto& outcome : ranks.wait_all(Deadline::in(20s)))
    EXPECT_THAT(outcome.text, HasSubstr("heard 0 1"));
}

TEST(Meeting, NoticesTheEndOfARankWhoseForkedChildLivesOn) {
  const int port = free_port();
  ForkedRanks ranks(2, [&](int rank) {
    const auto world = init(options(rank, 2, tcp(port)));
    summary(world);
    if (rank == 1) {
      if (::fork() == 0) {
        std::this_thread::sleep_for(3s);
        ::_exit(0);
      }
      ::kill(::getpid(), SIGKILL);
    }
    return wait_for_failure(world, 2s);
  });
  EXPECT_THAT(ranks.wait(0, Deadline::in(10s)).text,
              HasSubstr("ended without leaving"));
}

}  // namespace
}  // namespace ddp
