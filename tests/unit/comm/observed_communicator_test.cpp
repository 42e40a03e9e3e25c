#include "libddp/comm/observed_communicator.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "libddp/backends/backend.h"

namespace ddp {
namespace {

// Keeps what it is told.
class Log final : public Observer {
 public:
  void on_issue(const Operation& operation,
                std::chrono::steady_clock::time_point issued) override {
    issues.push_back(fingerprint(operation));
    last_issue = issued;
  }
  void on_complete(const Operation& operation, Work::Span span) override {
    completions.push_back(fingerprint(operation));
    spans.push_back(span);
  }
  void on_error(const Operation&, std::string_view text) override {
    errors.emplace_back(text);
  }

  std::vector<std::string> issues;
  std::vector<std::string> completions;
  std::vector<std::string> errors;
  std::vector<Work::Span> spans;
  std::chrono::steady_clock::time_point last_issue;
};

TEST(ObservedCommunicator, TellsWhenEachOperationRan) {
  const std::vector<World> worlds = make_thread_worlds(2);
  std::vector<std::shared_ptr<Log>> logs;
  for (int rank = 0; rank < 2; ++rank) logs.push_back(std::make_shared<Log>());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      ObservedCommunicator observed(
          make_communicator(worlds[static_cast<std::size_t>(rank)]),
          logs[static_cast<std::size_t>(rank)]);
      float values[3] = {1, 2, 3};
      const TensorView view{values, 3, DType::kFloat32, Device::cpu()};
      observed.all_reduce(view, ReduceOp::kSum, StreamView::cpu())
          .block(StreamView::cpu());
      observed.barrier(StreamView::cpu()).block(StreamView::cpu());
      observed.poll();
      EXPECT_EQ(values[2], 6);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> expected = {"#0 all_reduce(sum) of 3 float32",
                                             "#1 barrier"};
  for (const auto& log : logs) {
    EXPECT_EQ(log->issues, expected);
    EXPECT_EQ(log->completions, expected);
    EXPECT_TRUE(log->errors.empty());
    ASSERT_EQ(log->spans.size(), 2u);
    EXPECT_LE(log->spans[0].started, log->spans[0].ended);
    EXPECT_LE(log->spans[0].ended, log->spans[1].started);
    EXPECT_LE(log->last_issue, log->spans[1].started);
  }
}

TEST(ObservedCommunicator, SplitPartsTellTheSameObserver) {
  const std::vector<World> worlds = make_thread_worlds(1);
  const auto log = std::make_shared<Log>();
  ObservedCommunicator observed(make_communicator(worlds[0]), log);
  const auto part = observed.split(0, 0);
  part->barrier(StreamView::cpu()).block(StreamView::cpu());
  EXPECT_EQ(log->issues, std::vector<std::string>{"#0 barrier"});
  EXPECT_EQ(observed.split(-1, 0), nullptr);
}

TEST(MakeCommunicator, NamesTheKnownBackendsForAnUnknownOne) {
  const std::vector<World> worlds = make_thread_worlds(1);
  try {
    (void)make_communicator(worlds[0], "gloo");
    FAIL() << "an unknown backend was accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "unknown backend \"gloo\"; known are nccl, mpi, local, solo");
  }
}

TEST(MakeCommunicator, SaysWhichOptionBringsABackendThatIsNotBuilt) {
  const std::vector<World> worlds = make_thread_worlds(1);
  const std::vector<std::string> built = available_backends();
  for (const auto& [backend, option] : {std::pair("nccl", "-DLIBDDP_CUDA=ON"),
                                        std::pair("mpi", "-DLIBDDP_MPI=ON")}) {
    if (std::find(built.begin(), built.end(), backend) != built.end()) {
      EXPECT_THROW((void)make_communicator(worlds[0], backend),
                   InvalidArgument);
      continue;
    }
    try {
      (void)make_communicator(worlds[0], backend);
      FAIL() << backend << " was opened";
    } catch (const Unavailable& error) {
      EXPECT_NE(std::string(error.what()).find(option), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace ddp
