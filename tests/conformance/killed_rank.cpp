// A rank that is killed while the others wait for it: they raise PeerFailure
// that names it, in bounded time, and can end. One program in two roles: the
// test, and (with an argument) the ranks that it starts under mpirun.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "libddp/backends/backend.h"

namespace ddp {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kRanks = 3;
constexpr int kVictim = 1;
constexpr int kExpectedCode = 7;

// What a rank saw goes to a file, since mpirun's own exit code says nothing
// of single ranks once one was killed.
void write_report(const std::filesystem::path& folder, int rank,
                  const std::string& text) {
  std::ofstream(folder / std::to_string(rank)) << text;
}

int run_rank(const std::filesystem::path& folder) {
  InitOptions options;
  options.device = "cpu";
  options.collective_timeout = std::chrono::seconds(40);
  const World world = init(options);
  const auto communicator = make_communicator(world);
  const StreamView stream = StreamView::cpu();
  communicator->barrier(stream).wait(Deadline::in(std::chrono::seconds(30)));
  if (world.rank() == kVictim) ::raise(SIGKILL);
  std::vector<float> values(1 << 20, 1.0f);
  const TensorView tensor{values.data(), 1 << 20, DType::kFloat32,
                          Device::cpu()};
  const auto began = std::chrono::steady_clock::now();
  try {
    communicator->all_reduce(tensor, ReduceOp::kSum, stream)
        .wait(Deadline::in(std::chrono::seconds(60)));
    write_report(folder, world.rank(), "no error");
  } catch (const Error& error) {
    const auto took = std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::steady_clock::now() - began);
    write_report(folder, world.rank(),
                 concat(name(error.kind()), " after ", took.count(),
                        " s: ", error.what()));
  }
  return kExpectedCode;
}

std::string report_of(const std::filesystem::path& folder, int rank) {
  std::ifstream file(folder / std::to_string(rank));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(KilledRank, BecomesAPeerFailureOnTheOthersWhichThenEnd) {
  const auto folder = std::filesystem::temp_directory_path() /
                      concat("ddp-killed-rank-", getpid());
  std::filesystem::create_directories(folder);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  // Without recovery mpirun itself would kill those who should report.
  const std::string command =
      concat("timeout 60 ", DDP_MPIEXEC, " -n ", kRanks,
             " --enable-recovery --oversubscribe --bind-to none ", self, " ",
             folder.string(), " > ", (folder / "output").string(), " 2>&1");
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_NE(WEXITSTATUS(status), 124) << "ranks did not end within 60 s";
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == kVictim) continue;
    EXPECT_THAT(
        report_of(folder, rank),
        AllOf(HasSubstr("PeerFailure"), HasSubstr(concat("rank ", kVictim))))
        << "rank " << rank;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ddp

int main(int argc, char** argv) {
  if (argc == 2 && argv[1][0] == '/') return ddp::run_rank(argv[1]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
