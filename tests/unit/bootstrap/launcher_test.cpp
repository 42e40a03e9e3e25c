#include "libddp/bootstrap/launcher.h"

#include <gmock/gmock.h>

#include "kernels/core/error.h"

namespace ddp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Variables = std::map<std::string, std::string>;

Variables operator+(Variables all, const Variables& more) {
  all.insert(more.begin(), more.end());
  return all;
}

// Recorded: torchrun --nnodes=1 --nproc-per-node=4, worker 3.
const Variables kTorchrun{{"RANK", "3"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "3"},
                          {"LOCAL_WORLD_SIZE", "4"},
                          {"GROUP_RANK", "0"},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_RESTART_COUNT", "0"},
                          {"TORCHELASTIC_RUN_ID", "none"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

// Recorded: mpirun -n 4, rank 2.
const Variables kOpenMpi{
    {"OMPI_COMM_WORLD_RANK", "2"},       {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"OMPI_COMM_WORLD_NODE_RANK", "2"},  {"PMIX_RANK", "2"}};

// Recorded: mpiexec.hydra -n 4, rank 1.
const Variables kHydra{{"PMI_RANK", "1"},
                       {"PMI_SIZE", "4"},
                       {"PMI_FD", "9"},
                       {"MPI_LOCALRANKID", "1"},
                       {"MPI_LOCALNRANKS", "4"}};

// Recorded: srun --mpi=none -N2 -n4 -m cyclic, task 3 on the second node.
const Variables kSlurmStep{{"SLURM_JOB_ID", "17"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_PROCID", "3"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NODEID", "1"},
                           {"SLURM_NTASKS", "4"},
                           {"SLURM_GTIDS", "1,3"},
                           {"SLURM_STEP_NUM_TASKS", "4"},
                           {"SLURM_STEP_NODELIST", "node[1-2]"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                           {"SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1"}};

LaunchInfo detect(const Variables& variables) {
  return detect_launch(Environment(variables));
}

std::string error_of(const Variables& variables) {
  try {
    detect(variables);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

void expect_launch(const LaunchInfo& info, LaunchSource source, int rank,
                   int world_size, std::optional<int> local_rank,
                   std::optional<int> local_size) {
  EXPECT_EQ(info.source, source) << name(info.source);
  EXPECT_EQ(info.rank, rank);
  EXPECT_EQ(info.world_size, world_size);
  EXPECT_EQ(info.local_rank, local_rank);
  EXPECT_EQ(info.local_size, local_size);
}

TEST(Launcher, ReadsTorchrun) {
  expect_launch(detect(kTorchrun), LaunchSource::kTorchrun, 3, 4, 3, 4);
}

TEST(Launcher, ReadsOpenMpi) {
  expect_launch(detect(kOpenMpi), LaunchSource::kOpenMpi, 2, 4, 2, 4);
  EXPECT_TRUE(detect(kOpenMpi).has_process_manager);
}

TEST(Launcher, ReadsHydra) {
  expect_launch(detect(kHydra), LaunchSource::kPmi, 1, 4, 1, 4);
}

TEST(Launcher, ReadsASlurmStepThatIsNotContiguous) {
  expect_launch(detect(kSlurmStep), LaunchSource::kSlurm, 3, 4, 1, 2);
  EXPECT_FALSE(detect(kSlurmStep).has_process_manager);
}

TEST(Launcher, KnowsThatPmixServesMpi) {
  EXPECT_TRUE(
      detect(kSlurmStep + Variables{{"PMIX_RANK", "3"}}).has_process_manager);
}

TEST(Launcher, RunsAloneWithoutNoticeWhereThereIsNoLauncher) {
  const auto info = detect({{"PATH", "/bin"}, {"WORLD_SIZE", "  "}});
  expect_launch(info, LaunchSource::kAlone, 0, 1, std::nullopt, std::nullopt);
  EXPECT_THAT(info.notices, IsEmpty());
}

// Ranks of an mpirun inside an allocation inherit the daemon's task.
TEST(Launcher, LetsMpirunOutrankTheSlurmStepOfItsDaemon) {
  const auto daemon = kSlurmStep + Variables{};
  auto inherited = kOpenMpi + daemon;
  inherited["SLURM_PROCID"] = "0";
  inherited["SLURM_LOCALID"] = "0";
  expect_launch(detect(inherited), LaunchSource::kOpenMpi, 2, 4, 2, 4);
}

TEST(Launcher, LetsHydraOutrankTheSlurmStepOfItsProxy) {
  expect_launch(detect(kHydra + kSlurmStep), LaunchSource::kPmi, 1, 4, 1, 4);
}

TEST(Launcher, LetsTorchrunOutrankAllOthers) {
  expect_launch(detect(kTorchrun + kSlurmStep + kOpenMpi + kHydra),
                LaunchSource::kTorchrun, 3, 4, 3, 4);
}

TEST(Launcher, LetsOpenMpiOutrankPmi) {
  expect_launch(detect(kOpenMpi + kHydra), LaunchSource::kOpenMpi, 2, 4, 2, 4);
}

TEST(Launcher, LetsArgumentsOutrankEveryLauncher) {
  const auto info = detect_launch(Environment(kTorchrun + kOpenMpi), 5, 6);
  expect_launch(info, LaunchSource::kArguments, 5, 6, std::nullopt,
                std::nullopt);
}

TEST(Launcher, WantsBothArgumentsOrNeither) {
  EXPECT_THROW(detect_launch(Environment(), 1, std::nullopt), InvalidArgument);
  EXPECT_THROW(detect_launch(Environment(), std::nullopt, 2), InvalidArgument);
}

// Recorded: a batch script, outside srun.
TEST(Launcher, RunsAloneInABatchScriptAndSaysSo) {
  const auto info = detect({{"SLURM_JOB_ID", "17"},
                            {"SLURM_PROCID", "0"},
                            {"SLURM_LOCALID", "0"},
                            {"SLURM_GTIDS", "0"},
                            {"SLURM_NTASKS", "4"},
                            {"SLURM_NPROCS", "4"}});
  expect_launch(info, LaunchSource::kAlone, 0, 1, std::nullopt, std::nullopt);
  EXPECT_THAT(info.notices, ElementsAre(HasSubstr("SLURM_NTASKS=4")));
}

// Recorded: the shell of salloc -n 8.
TEST(Launcher, RunsAloneInTheShellOfSallocAndSaysSo) {
  const auto info = detect({{"SLURM_JOB_ID", "18"}, {"SLURM_NTASKS", "8"}});
  EXPECT_EQ(info.world_size, 1);
  EXPECT_THAT(info.notices, ElementsAre(HasSubstr("srun")));
}

TEST(Launcher, DoesNotTakeAnInteractiveStepForOneOfSruns) {
  const auto info = detect({{"SLURM_JOB_ID", "18"},
                            {"SLURM_NTASKS", "8"},
                            {"SLURM_PROCID", "0"},
                            {"SLURM_STEP_ID", "4294967290"},
                            {"SLURM_STEP_NUM_TASKS", "1"}});
  EXPECT_EQ(info.source, LaunchSource::kAlone);
}

// Recorded: srun -N1 -n1 inside an allocation of 2 x 2 tasks.
TEST(Launcher, ReadsANestedStepByItsStepVariablesAlone) {
  const auto info = detect({{"SLURM_JOB_ID", "19"},
                            {"SLURM_STEP_ID", "1"},
                            {"SLURM_PROCID", "0"},
                            {"SLURM_LOCALID", "0"},
                            {"SLURM_NTASKS", "1"},
                            {"SLURM_NTASKS_PER_NODE", "2"},
                            {"SLURM_TASKS_PER_NODE", "2(x2)"},
                            {"SLURM_JOB_NODELIST", "node[1-2]"},
                            {"SLURM_GTIDS", "0"},
                            {"SLURM_STEP_NUM_TASKS", "1"},
                            {"SLURM_STEP_NODELIST", "node1"},
                            {"SLURM_STEP_TASKS_PER_NODE", "1"}});
  expect_launch(info, LaunchSource::kSlurm, 0, 1, 0, 1);
}

// Recorded: srun -N2 -n4 -m cyclic of an allocation with more room on node1.
TEST(Launcher, CountsUnevenNodesByTheTaskIds) {
  auto uneven = kSlurmStep;
  uneven["SLURM_PROCID"] = "3";
  uneven["SLURM_LOCALID"] = "2";
  uneven["SLURM_GTIDS"] = "0,2,3";
  uneven["SLURM_STEP_TASKS_PER_NODE"] = "3,1";
  expect_launch(detect(uneven), LaunchSource::kSlurm, 3, 4, 2, 3);
}

TEST(Launcher, ReadsAStepOfAThousandNodes) {
  std::string ids = "8184";
  for (int id = 8185; id < 8192; ++id) ids += "," + std::to_string(id);
  auto large = kSlurmStep;
  large["SLURM_PROCID"] = "8191";
  large["SLURM_LOCALID"] = "7";
  large["SLURM_GTIDS"] = ids;
  large["SLURM_STEP_NUM_TASKS"] = "8192";
  large["SLURM_STEP_TASKS_PER_NODE"] = "8(x1024)";
  expect_launch(detect(large), LaunchSource::kSlurm, 8191, 8192, 7, 8);
}

TEST(Launcher, TakesTheLocalRankOfPmiUnderSrunFromSlurm) {
  auto pmi2 = kSlurmStep + Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}};
  expect_launch(detect(pmi2), LaunchSource::kPmi, 3, 4, 1, std::nullopt);
}

TEST(Launcher, TakesHandSetVariablesWithoutALocalRank) {
  const auto info = detect({{"RANK", "1"},
                            {"WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "a"},
                            {"MASTER_PORT", "1"}});
  expect_launch(info, LaunchSource::kTorchrun, 1, 2, std::nullopt,
                std::nullopt);
}

TEST(Launcher, ListsTheVariablesWhenTorchrunsAreIncomplete) {
  const auto text = error_of({{"RANK", "1"}, {"MASTER_ADDR", "a"}});
  EXPECT_THAT(text, HasSubstr("RANK=1"));
  EXPECT_THAT(text, HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(text, HasSubstr("MASTER_PORT is not set"));
}

TEST(Launcher, ListsTheVariablesOfAContradiction) {
  auto wrong = kSlurmStep;
  wrong["SLURM_PROCID"] = "2";
  EXPECT_THAT(error_of(wrong), HasSubstr("SLURM_PROCID=2"));
  EXPECT_THAT(error_of(wrong), HasSubstr("SLURM_GTIDS=1,3"));
  auto sum = kSlurmStep;
  sum["SLURM_STEP_TASKS_PER_NODE"] = "2(x3)";
  EXPECT_THAT(error_of(sum), HasSubstr("SLURM_STEP_TASKS_PER_NODE=2(x3)"));
  auto local = kTorchrun;
  local["LOCAL_RANK"] = "4";
  EXPECT_THAT(error_of(local), HasSubstr("LOCAL_RANK=4, LOCAL_WORLD_SIZE=4"));
  auto empty = kOpenMpi;
  empty["OMPI_COMM_WORLD_SIZE"] = "0";
  EXPECT_THAT(error_of(empty), HasSubstr("OMPI_COMM_WORLD_SIZE=0"));
}

TEST(Launcher, QuotesAVariableThatIsNoNumber) {
  auto wrong = kTorchrun;
  wrong["WORLD_SIZE"] = "four";
  EXPECT_THAT(error_of(wrong), HasSubstr("WORLD_SIZE=\"four\""));
}

TEST(Launcher, RefusesARankOutsideTheWorldWithItsVariables) {
  auto outside = kTorchrun;
  outside["RANK"] = "4";
  try {
    check_rank(detect(outside));
    ADD_FAILURE() << "rank 4 of 4 was accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("RANK=4, WORLD_SIZE=4"));
  }
}

}  // namespace
}  // namespace ddp
