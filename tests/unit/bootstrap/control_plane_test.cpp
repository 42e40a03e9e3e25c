#include "libddp/bootstrap/control_plane.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <thread>

#include "libddp/bootstrap/memory_control_plane.h"
#include "tests/unit/bootstrap/hub_fixture.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Planes {
  std::vector<std::shared_ptr<ControlPlane>> ranks;
  std::shared_ptr<void> keep_alive;
};

Planes memory_planes(int count) {
  Planes planes;
  for (auto& plane : make_memory_control_planes(count, [](int rank) {
         return concat("rank ", rank, " (host", rank, ", pid ", 1000 + rank,
                       ")");
       }))
    planes.ranks.push_back(std::move(plane));
  return planes;
}

Planes tcp_planes(int count) {
  Planes planes;
  const auto hub = std::make_shared<TestHub>(count);
  planes.keep_alive = hub;
  for (int rank = 0; rank < count; ++rank)
    planes.ranks.push_back(
        std::make_shared<TcpControlPlane>(hub->connect(rank)));
  return planes;
}

struct Kind {
  const char* name;
  std::function<Planes(int)> make;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class ControlPlaneTest : public ::testing::TestWithParam<Kind> {
 protected:
  /// Runs `body(rank)` on a thread for each of the planes.
  void on_all(int count, const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count; ++rank) threads.emplace_back(body, rank);
    for (auto& thread : threads) thread.join();
  }
  /// Waits up to 2 s.
  static bool soon(const std::function<bool()>& condition) {
    const auto deadline = Deadline::in(2s);
    while (!condition() && !deadline.has_passed())
      std::this_thread::sleep_for(2ms);
    return condition();
  }
  template <typename Error>
  static std::string text_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    } catch (const std::exception& error) {
      return concat("another error: ", error.what());
    }
    return "no error";
  }
};

TEST_P(ControlPlaneTest, GivesEveryRankAllMessagesInRankOrder) {
  const auto planes = GetParam().make(4);
  on_all(4, [&](int rank) {
    auto& plane = *planes.ranks[static_cast<std::size_t>(rank)];
    for (int turn = 0; turn < 5; ++turn) {
      const auto all =
          plane.exchange("topic", concat(turn, "-", rank), Deadline::in(5s));
      EXPECT_THAT(all, ElementsAre(concat(turn, "-0"), concat(turn, "-1"),
                                   concat(turn, "-2"), concat(turn, "-3")));
    }
  });
}

TEST_P(ControlPlaneTest, KeepsTopicsApart) {
  const auto planes = GetParam().make(2);
  std::thread other([&] {
    planes.ranks[1]->exchange("a", "a1", Deadline::in(5s));
    planes.ranks[1]->exchange("b", "b1", Deadline::in(5s));
  });
  std::thread first([&] {
    EXPECT_THAT(planes.ranks[0]->exchange("b", "b0", Deadline::in(5s)),
                ElementsAre("b0", "b1"));
  });
  EXPECT_THAT(planes.ranks[0]->exchange("a", "a0", Deadline::in(5s)),
              ElementsAre("a0", "a1"));
  first.join();
  other.join();
}

TEST_P(ControlPlaneTest, ListsWhoJoinedAndWhoIsMissingAtTheDeadline) {
  const auto planes = GetParam().make(4);
  on_all(4, [&](int rank) {
    if (rank == 2) return;
    EXPECT_THAT(text_of<Timeout>([&] {
                  planes.ranks[static_cast<std::size_t>(rank)]->exchange(
                      "plan", "", Deadline::in(300ms));
                }),
                HasSubstr("joined: 0,1,3; missing: 2"));
  });
}

TEST_P(ControlPlaneTest, TellsTheOthersOfAFailureWhileTheyWait) {
  const auto planes = GetParam().make(3);
  on_all(3, [&](int rank) {
    auto& plane = *planes.ranks[static_cast<std::size_t>(rank)];
    if (rank == 1) {
      std::this_thread::sleep_for(30ms);
      plane.announce_failure(ErrorKind::kNonFinite, "the loss is NaN");
      plane.announce_failure(ErrorKind::kError, "a second time");
      return;
    }
    const auto text = text_of<PeerFailure>(
        [&] { plane.exchange("never", "", Deadline::in(10s)); });
    EXPECT_THAT(text, HasSubstr("rank 1 (host1, pid 1001)"));
    EXPECT_THAT(text, HasSubstr("the loss is NaN"));
    ASSERT_TRUE(plane.failure().has_value());
    EXPECT_EQ(plane.failure()->rank, 1);
    EXPECT_EQ(plane.failure()->kind, ErrorKind::kNonFinite);
  });
  EXPECT_FALSE(planes.ranks[1]->failure().has_value());
}

TEST_P(ControlPlaneTest, CallsBackOnceForAFailure) {
  const auto planes = GetParam().make(2);
  std::atomic<int> calls{0};
  const auto count = [&](const Failure& failure) {
    EXPECT_EQ(failure.rank, 0);
    ++calls;
  };
  planes.ranks[1]->on_failure(count);
  planes.ranks[0]->announce_failure(ErrorKind::kError, "one");
  EXPECT_TRUE(soon([&] { return calls == 1; }));
  const auto caller = std::this_thread::get_id();
  planes.ranks[1]->on_failure([&](const Failure&) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++calls;
  });
  EXPECT_EQ(calls, 2);
}

TEST_P(ControlPlaneTest, DoesNotCallARemovedCallback) {
  const auto planes = GetParam().make(2);
  std::atomic<bool> was_called{false};
  planes.ranks[1]->remove_callback(
      planes.ranks[1]->on_failure([&](const Failure&) { was_called = true; }));
  planes.ranks[0]->announce_failure(ErrorKind::kError, "one");
  EXPECT_TRUE(soon([&] { return planes.ranks[1]->failure().has_value(); }));
  EXPECT_FALSE(was_called);
}

TEST_P(ControlPlaneTest, WaitsForACallbackThatItRemoves) {
  const auto planes = GetParam().make(2);
  std::atomic<bool> has_begun{false};
  std::atomic<bool> is_over{false};
  const int id = planes.ranks[1]->on_failure([&](const Failure&) {
    has_begun = true;
    std::this_thread::sleep_for(50ms);
    is_over = true;
  });
  planes.ranks[0]->announce_failure(ErrorKind::kError, "one");
  ASSERT_TRUE(soon([&] { return has_begun.load(); }));
  planes.ranks[1]->remove_callback(id);
  EXPECT_TRUE(is_over);
}

TEST_P(ControlPlaneTest, LetsACallbackUseThePlane) {
  const auto planes = GetParam().make(2);
  std::atomic<bool> is_over{false};
  int id = 0;
  id = planes.ranks[1]->on_failure([&](const Failure&) {
    planes.ranks[1]->announce_failure(ErrorKind::kPeerFailure, "me too");
    planes.ranks[1]->remove_callback(id);
    is_over = true;
  });
  planes.ranks[0]->announce_failure(ErrorKind::kError, "one");
  EXPECT_TRUE(soon([&] { return is_over.load(); }));
}

TEST_P(ControlPlaneTest, SurvivesACallbackThatDropsThePlane) {
  auto planes = GetParam().make(2);
  std::atomic<bool> is_over{false};
  planes.ranks[1]->on_failure(
      [&, plane = std::weak_ptr(planes.ranks[1])](const Failure&) {
        planes.ranks[1].reset();
        is_over = plane.expired();
      });
  planes.ranks[0]->announce_failure(ErrorKind::kError, "one");
  EXPECT_TRUE(soon([&] { return is_over.load(); }));
}

TEST_P(ControlPlaneTest, SaysWhoHasLeftWhenAnExchangeNeedsThem) {
  const auto planes = GetParam().make(2);
  planes.ranks[1]->leave();
  EXPECT_THAT(text_of<PeerFailure>([&] {
                planes.ranks[0]->exchange("late", "", Deadline::in(5s));
              }),
              HasSubstr("rank 1 (host1, pid 1001) has left"));
  EXPECT_FALSE(planes.ranks[0]->failure().has_value());
}

TEST_P(ControlPlaneTest, CompletesAnExchangeOfARankThatLeavesAfterIt) {
  const auto planes = GetParam().make(2);
  on_all(2, [&](int rank) {
    auto& plane = *planes.ranks[static_cast<std::size_t>(rank)];
    if (rank == 0) std::this_thread::sleep_for(30ms);
    EXPECT_EQ(plane.exchange("last", "", Deadline::in(5s)).size(), 2u);
    plane.leave();
  });
}

INSTANTIATE_TEST_SUITE_P(AllPlanes, ControlPlaneTest,
                         ::testing::Values(Kind{"Memory", memory_planes},
                                           Kind{"Tcp", tcp_planes}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace ddp
