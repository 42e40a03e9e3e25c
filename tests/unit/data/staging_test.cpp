#include "libddp/data/staging.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "tests/unit/data/fake_control_plane.h"
#include "libddp/data/checksum.h"
#include "libddp/data/stager.h"
#include "tests/support/temporary_folder.h"

namespace ddp {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<StagedFile> stage(const std::vector<std::string>& files,
                              const std::string& cache) {
  return stage_on_this_machine(files, cache, 0,
                               Deadline::in(Milliseconds(10000)));
}

template <typename E>
std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// What each of `size` ranks, `ranks_per_node` a machine, gets or is told.
std::vector<std::string> stage_on_ranks(
    int size, int ranks_per_node, const StagingOptions& options,
    const std::function<std::vector<std::string>(int rank)>& files) {
  FakeExchange shared(size);
  std::vector<std::string> outcomes(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      FakeControlPlane control(shared, rank);
      const StagingGroup group{
          .rank = rank,
          .stager = rank / ranks_per_node * ranks_per_node,
          .description =
              concat("rank ", rank, " (node", rank / ranks_per_node, ")"),
          .control = &control};
      try {
        for (const auto& path : stage_files(files(rank), options, group))
          outcomes[rank] += read_file(path) + ";";
      } catch (const Error& error) {
        outcomes[rank] = concat(name(error.kind()), ": ", error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

StagingOptions options(const std::string& cache) {
  return {.cache_dir = cache,
          .keep_free_bytes = 0,
          .timeout = std::chrono::seconds(20)};
}

TEST(Stager, CopiesAndWritesTheChecksumBeside) {
  const TemporaryFolder shared, local;
  const std::string source = shared.write("a.bin", "tokens");
  const auto staged = stage({source}, local / "cache");
  ASSERT_EQ(staged.size(), 1u);
  EXPECT_TRUE(staged[0].was_copied);
  EXPECT_EQ(staged[0].path, staged_path(local / "cache", source));
  EXPECT_EQ(staged[0].bytes, 6u);
  EXPECT_EQ(read_file(staged[0].path), "tokens");
  const std::string hex = to_hex(
      Checksum::of(std::as_bytes(std::span(std::string_view("tokens")))));
  EXPECT_EQ(to_hex(staged[0].checksum), hex);
  EXPECT_THAT(read_file(staged[0].path + ".xxh3"), HasSubstr(hex + " 6 "));
}

TEST(Stager, CopiesMoreThanOnePiece) {
  const TemporaryFolder shared, local;
  std::string bytes(17 << 20, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * i >> 7);
  const auto staged = stage({shared.write("a", bytes)}, local.path());
  EXPECT_TRUE(read_file(staged[0].path) == bytes);
  EXPECT_EQ(staged[0].checksum, Checksum::of(std::as_bytes(std::span(bytes))));
}

TEST(Stager, LeavesAGoodCopyAlone) {
  const TemporaryFolder shared, local;
  const std::string source = shared.write("a", "tokens");
  const auto first = stage({source}, local.path());
  const auto time = fs::last_write_time(first[0].path);
  const auto second = stage({source}, local.path());
  EXPECT_FALSE(second[0].was_copied);
  EXPECT_EQ(second[0].checksum, first[0].checksum);
  EXPECT_EQ(fs::last_write_time(second[0].path), time);
}

TEST(Stager, CopiesAgainWhatIsDamagedCutOrOutdated) {
  const TemporaryFolder shared, local;
  const std::string source = shared.write("a", "tokens");
  const std::string copy = stage({source}, local.path())[0].path;
  const auto damage = {std::string("tokenz"), std::string("tok"),
                       std::string("")};
  for (const std::string& bytes : damage) {
    std::ofstream(copy, std::ios::binary) << bytes;
    EXPECT_TRUE(stage({source}, local.path())[0].was_copied) << bytes;
    EXPECT_EQ(read_file(copy), "tokens");
  }
  std::ofstream(copy + ".xxh3") << "nonsense";
  EXPECT_TRUE(stage({source}, local.path())[0].was_copied);
  fs::remove(copy + ".xxh3");
  EXPECT_TRUE(stage({source}, local.path())[0].was_copied);
  shared.write("a", "TOKENS");
  fs::last_write_time(source,
                      fs::last_write_time(source) + std::chrono::seconds(2));
  EXPECT_TRUE(stage({source}, local.path())[0].was_copied);
  EXPECT_EQ(read_file(copy), "TOKENS");
}

TEST(Stager, CopiesOnlyWhatIsMissing) {
  const TemporaryFolder shared, local;
  const std::string a = shared.write("a", "1"), b = shared.write("b", "2");
  stage({a}, local.path());
  const auto staged = stage({a, b}, local.path());
  EXPECT_FALSE(staged[0].was_copied);
  EXPECT_TRUE(staged[1].was_copied);
}

TEST(Stager, KeepsFilesOfOneNameInTwoFoldersApart) {
  const TemporaryFolder one, two, local;
  const auto staged =
      stage({one.write("a", "first"), two.write("a", "second")}, local.path());
  EXPECT_EQ(read_file(staged[0].path), "first");
  EXPECT_EQ(read_file(staged[1].path), "second");
}

TEST(Stager, StatesBothNumbersWhenThereIsTooLittleRoom) {
  const TemporaryFolder shared, local;
  const std::string source = shared.write("a", "tokens");
  const std::uint64_t keep = std::uint64_t{1} << 62;
  const std::string text = text_of<InvalidArgument>([&] {
    stage_on_this_machine({source}, local / "c", keep, Deadline::never());
  });
  EXPECT_THAT(text, HasSubstr("needs 6 bytes"));
  EXPECT_THAT(text, HasSubstr("4611686018427387904 free"));
  EXPECT_THAT(text, HasSubstr("are available"));
  EXPECT_FALSE(fs::exists(staged_path(local / "c", source)));
  // Nothing to copy needs no room.
  stage({source}, local / "c");
  stage_on_this_machine({source}, local / "c", keep, Deadline::never());
}

TEST(Stager, NamesAMissingSource) {
  const TemporaryFolder shared, local;
  EXPECT_THAT(
      text_of<InvalidArgument>([&] { stage({shared / "none"}, local.path()); }),
      AllOf(HasSubstr(shared / "none"), HasSubstr("cannot be found")));
  EXPECT_THAT(text_of<InvalidArgument>([&] { stage({shared / "none"}, ""); }),
              HasSubstr("cache_dir is empty"));
}

TEST(Stager, SaysWhyACacheFolderCannotBeMade) {
  const TemporaryFolder shared, local;
  const std::string source = shared.write("a", "tokens");
  const std::string file = local.write("file", "");
  EXPECT_THAT(text_of<Error>([&] { stage({source}, file); }), HasSubstr(file));
}

TEST(Stager, StopsAtItsDeadlineAndLeavesNothing) {
  const TemporaryFolder shared, local;
  const std::string source = shared.write("a", "tokens");
  EXPECT_THAT(text_of<Timeout>([&] {
                stage_on_this_machine({source}, local.path(), 0,
                                      Deadline::in(Milliseconds(0)));
              }),
              AllOf(HasSubstr("copying " + source), HasSubstr("within 0 s")));
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(local.path()))
    files += entry.is_regular_file() && entry.path().filename() != ".lock";
  EXPECT_EQ(files, 0);
}

TEST(Stager, WaitsForAnotherJobUntilItsDeadline) {
  const TemporaryFolder shared, local;
  const std::string source = shared.write("a", "tokens");
  const int other = ::open((local / ".lock").c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_THAT(text_of<Timeout>([&] {
                stage_on_this_machine({source}, local.path(), 0,
                                      Deadline::in(Milliseconds(60)));
              }),
              HasSubstr("another job"));
  std::thread release([&] {
    std::this_thread::sleep_for(Milliseconds(50));
    ::close(other);
  });
  EXPECT_TRUE(stage({source}, local.path())[0].was_copied);
  release.join();
}

TEST(Stager, RemovesWhatAKilledJobLeft) {
  const TemporaryFolder shared, local;
  const std::string source = shared.write("a", "tokens");
  const std::string copy = staged_path(local.path(), source);
  fs::create_directories(fs::path(copy).parent_path());
  std::ofstream(copy + ".tmp.123.0") << "half";
  stage({source}, local.path());
  EXPECT_FALSE(fs::exists(copy + ".tmp.123.0"));
}

TEST(StageFiles, GivesEveryRankTheCopies) {
  const TemporaryFolder shared, local;
  const std::vector<std::string> files = {shared.write("a", "first"),
                                          shared.write("b", "second")};
  EXPECT_THAT(
      stage_on_ranks(4, 2, options(local.path()), [&](int) { return files; }),
      Each("first;second;"));
}

TEST(StageFiles, TellsEveryRankWhyAStagerFailed) {
  const TemporaryFolder shared, local;
  const std::string good = shared.write("a", "first");
  const auto outcomes =
      stage_on_ranks(4, 2, options(local.path()), [&](int rank) {
        return std::vector<std::string>{rank == 2 ? shared / "none" : good};
      });
  EXPECT_THAT(outcomes, Each(AllOf(HasSubstr("InvalidArgument: rank 2 (node1)"),
                                   HasSubstr(shared / "none"))));
}

TEST(StageFiles, TellsEveryRankWhenMachinesDiffer) {
  const TemporaryFolder one, two, local;
  one.write("a", "first");
  two.write("a", "other");
  const auto outcomes =
      stage_on_ranks(4, 2, options(local.path()), [&](int rank) {
        return std::vector<std::string>{(rank < 2 ? one : two) / "a"};
      });
  EXPECT_THAT(outcomes, Each(AllOf(HasSubstr("CorruptData: "),
                                   HasSubstr("file 0 differs"),
                                   HasSubstr(one / "a"), HasSubstr("rank 0"),
                                   HasSubstr(two / "a"), HasSubstr("rank 2"))));
  const auto counts = stage_on_ranks(
      2, 1, options(local.path()),
      [&](int rank) { return std::vector<std::string>(rank + 1, one / "a"); });
  EXPECT_THAT(counts, Each(HasSubstr("rank 0 was given 1 files, rank 1 2")));
}

TEST(StageFiles, AnEmptyListIsNoError) {
  const TemporaryFolder local;
  EXPECT_THAT(stage_on_ranks(2, 2, options(local.path()),
                             [](int) { return std::vector<std::string>{}; }),
              ElementsAre("", ""));
}

}  // namespace
}  // namespace ddp
