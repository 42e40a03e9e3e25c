#include <gmock/gmock.h>
#include <mpi.h>

#include "kernels/core/error.h"
#include "libddp/bootstrap/world.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

InitOptions quiet() {
  InitOptions options;
  options.device = "cpu";
  options.timeout = 20s;
  options.announce = false;
  return options;
}

void expect_works(const World& world) {
  const auto all = world.control().exchange(
      "check", std::to_string(world.rank()), Deadline::in(10s));
  ASSERT_EQ(static_cast<int>(all.size()), world.size());
  for (int rank = 0; rank < world.size(); ++rank)
    EXPECT_EQ(all[static_cast<std::size_t>(rank)], std::to_string(rank));
  world.store().add("count", 1);
  // The store ends with rank 0's world.
  world.control().exchange("all have counted", "", Deadline::in(10s));
}

// First: it is libddp that begins MPI here.
TEST(MpiMeeting, BeginsMpiAndMeetsInTheLaunchersOrder) {
  const auto world = init(quiet());
  EXPECT_EQ(world.source(), LaunchSource::kOpenMpi);
  EXPECT_EQ(std::to_string(world.rank()),
            world.environment().get("OMPI_COMM_WORLD_RANK"));
  EXPECT_EQ(std::to_string(world.local_rank()),
            world.environment().get("OMPI_COMM_WORLD_LOCAL_RANK"));
  EXPECT_EQ(world.local_size(), world.size());
  expect_works(world);
  ASSERT_TRUE(world.mpi_communicator().has_value());
  const MPI_Comm communicator = MPI_Comm_f2c(*world.mpi_communicator());
  int rank = -1;
  MPI_Comm_rank(communicator, &rank);
  EXPECT_EQ(rank, world.rank());
  int relation = MPI_UNEQUAL;
  MPI_Comm_compare(communicator, MPI_COMM_WORLD, &relation);
  EXPECT_EQ(relation, MPI_CONGRUENT);
}

TEST(MpiMeeting, MeetsAgainWhereMpiRunsAlready) {
  for (int turn = 0; turn < 3; ++turn) expect_works(init(quiet()));
}

TEST(MpiMeeting, TakesTheCallersCommunicator) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, size - rank, &reversed);
  auto options = quiet();
  options.mpi_communicator = MPI_Comm_c2f(reversed);
  const auto world = init(options);
  int expected = -1;
  MPI_Comm_rank(reversed, &expected);
  EXPECT_EQ(world.rank(), expected);
  EXPECT_EQ(world.size(), rank % 2 == 0 ? (size + 1) / 2 : size / 2);
  expect_works(world);
  MPI_Comm_free(&reversed);
}

TEST(MpiMeeting, OrdersRanksAsTheProgramSays) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  auto options = quiet();
  options.rank = size - 1 - rank;
  options.world_size = size;
  options.init_method = "mpi://";
  const auto world = init(options);
  EXPECT_EQ(world.rank(), size - 1 - rank);
  expect_works(world);
}

TEST(MpiMeeting, NamesTheFixWhenSrunStartedWorldsOfOne) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  auto options = quiet();
  options.init_method = "mpi://";
  const auto tasks = std::to_string(size + 3);
  options.environment = Environment({{"SLURM_JOB_ID", "1"},
                                     {"SLURM_STEP_ID", "0"},
                                     {"SLURM_PROCID", "0"},
                                     {"SLURM_STEP_NUM_TASKS", tasks}});
  try {
    init(options);
    ADD_FAILURE() << "a wrong world was accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("--mpi=pmix"));
    EXPECT_THAT(error.what(), HasSubstr("srun started " + tasks));
    EXPECT_THAT(error.what(), HasSubstr("sees " + std::to_string(size)));
  }
}

}  // namespace
}  // namespace ddp
