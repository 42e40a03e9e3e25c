// Staging on the real control plane of worlds that are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "libddp/bootstrap/world.h"
#include "libddp/data/staging.h"
#include "tests/support/temporary_folder.h"

namespace ddp {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// What each rank of 4, 2 a machine, reads from its copies or is told.
std::vector<std::string> stage_on_worlds(
    const std::string& cache,
    const std::function<std::vector<std::string>(int rank)>& files) {
  const auto worlds = make_thread_worlds(4, std::chrono::seconds(30), 2);
  std::vector<std::string> outcomes(worlds.size());
  std::vector<std::thread> threads;
  for (const World& world : worlds)
    threads.emplace_back([&] {
      const int rank = world.rank();
      try {
        const StagingOptions options{.cache_dir = cache,
                                     .keep_free_bytes = 0,
                                     .timeout = std::chrono::seconds(20)};
        for (const auto& path :
             stage_files(files(rank), options, StagingGroup::of(world)))
          outcomes[rank] += read_file(path) + ";";
      } catch (const Error& error) {
        outcomes[rank] = concat(name(error.kind()), ": ", error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

TEST(StagingGroup, TheLowestRankOfAMachineStages) {
  const auto worlds = make_thread_worlds(4, std::chrono::seconds(30), 2);
  std::vector<int> stagers;
  for (const World& world : worlds) {
    const StagingGroup group = StagingGroup::of(world);
    EXPECT_EQ(group.rank, world.rank());
    EXPECT_EQ(group.is_stager(), world.local_rank() == 0);
    stagers.push_back(group.stager);
  }
  EXPECT_THAT(stagers, ::testing::ElementsAre(0, 0, 2, 2));
}

TEST(StagingWorlds, EveryRankGetsTheCopies) {
  const TemporaryFolder shared, local;
  const std::vector<std::string> files = {shared.write("a", "first"),
                                          shared.write("b", "second")};
  for (int repeat = 0; repeat < 2; ++repeat)
    EXPECT_THAT(stage_on_worlds(local.path(), [&](int) { return files; }),
                Each("first;second;"));
}

TEST(StagingWorlds, EveryRankHearsWhyAStagerFailed) {
  const TemporaryFolder shared, local;
  const std::string good = shared.write("a", "first");
  const auto outcomes = stage_on_worlds(local.path(), [&](int rank) {
    return std::vector<std::string>{rank == 2 ? shared / "none" : good};
  });
  EXPECT_THAT(outcomes, Each(AllOf(HasSubstr("InvalidArgument: rank 2"),
                                   HasSubstr(shared / "none"))));
}

}  // namespace
}  // namespace ddp
