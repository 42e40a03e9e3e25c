#include "libddp/bootstrap/meeting_plan.h"

#include <gmock/gmock.h>

#include "kernels/core/error.h"

namespace ddp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

LaunchInfo launched(LaunchSource source, int world_size,
                    std::optional<int> local_size = std::nullopt) {
  LaunchInfo info;
  info.source = source;
  info.world_size = world_size;
  info.local_size = local_size;
  info.variables = "the variables";
  return info;
}

MeetingFacts facts(bool has_mpi, bool is_mpi_running = false) {
  MeetingFacts result;
  result.has_mpi = has_mpi;
  result.is_mpi_running = is_mpi_running;
  return result;
}

MeetingFacts by_url(const char* url) {
  MeetingFacts result;
  result.init_method = url;
  return result;
}

using Variables = std::map<std::string, std::string>;

Environment master(std::map<std::string, std::string> more = {}) {
  more.insert({{"MASTER_ADDR", " 10.0.0.1 "}, {"MASTER_PORT", "29500"}});
  return Environment(more);
}

TEST(MeetingPlan, NeedsNoMeetingAlone) {
  EXPECT_EQ(plan_meeting(launched(LaunchSource::kAlone, 1), {}, {}).method,
            MeetingMethod::kNone);
}

TEST(MeetingPlan, UsesMasterPortAcrossNodes) {
  const auto plan =
      plan_meeting(launched(LaunchSource::kTorchrun, 4, 2), master(), {});
  EXPECT_EQ(plan.method, MeetingMethod::kTcp);
  EXPECT_THAT(plan.hub.hosts, ElementsAre("10.0.0.1"));
  EXPECT_THAT(plan.hub.ports, ElementsAre(29500));
  EXPECT_THAT(plan.hub.origin, HasSubstr("MASTER_ADDR=10.0.0.1"));
}

TEST(MeetingPlan, LeavesMasterPortToTheAgentsStore) {
  const auto plan =
      plan_meeting(launched(LaunchSource::kTorchrun, 4, 2),
                   master({{"TORCHELASTIC_USE_AGENT_STORE", "True"}}), {});
  EXPECT_THAT(plan.hub.ports, ElementsAre(29501));
}

TEST(MeetingPlan, MayTakeAnotherPortOnOneNode) {
  const auto plan =
      plan_meeting(launched(LaunchSource::kTorchrun, 4, 4), master(), {});
  EXPECT_THAT(plan.hub.ports, SizeIs(16));
  EXPECT_EQ(plan.hub.ports.front(), 29500);
}

TEST(MeetingPlan, LetsLibddpPortWin) {
  const auto environment =
      master({{"LIBDDP_PORT", "4711"}, {"LIBDDP_PORT_RANGE", "50010-50020"}});
  const auto plan =
      plan_meeting(launched(LaunchSource::kTorchrun, 4, 4), environment, {});
  EXPECT_THAT(plan.hub.ports, ElementsAre(4711));
}

TEST(MeetingPlan, TakesAllPortsFromThePortRange) {
  const auto environment = master({{"LIBDDP_PORT_RANGE", "50010-50020"}});
  for (const auto source : {LaunchSource::kTorchrun, LaunchSource::kOpenMpi}) {
    const auto plan =
        plan_meeting(launched(source, 4), environment, facts(true));
    ASSERT_THAT(plan.hub.ports, SizeIs(11));
    for (const auto port : plan.hub.ports) {
      EXPECT_GE(port, 50010);
      EXPECT_LE(port, 50020);
    }
  }
}

TEST(MeetingPlan, RefusesABadPortRangeAndQuotesIt) {
  for (const char* bad : {"50020-50010", "x", "0-5", "1-70000", "5-"}) {
    try {
      ports_in_range(Environment(Variables{{"LIBDDP_PORT_RANGE", bad}}), "");
      ADD_FAILURE() << bad << " was accepted";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad));
    }
  }
}

TEST(MeetingPlan, FindsRankZeroOfASlurmStep) {
  const Environment environment({{"SLURM_JOB_ID", "17"},
                                 {"SLURM_STEP_ID", "3"},
                                 {"SLURM_STEP_NODELIST", "gpu[07-09]"},
                                 {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}});
  const auto info = launched(LaunchSource::kSlurm, 6, 2);
  const auto plan = plan_meeting(info, environment, facts(true));
  EXPECT_EQ(plan.method, MeetingMethod::kTcp);
  EXPECT_THAT(plan.hub.hosts, ElementsAre("gpu07", "10.0.0.9"));
  EXPECT_EQ(plan.hub.token, "slurm:17.3:0");
  EXPECT_THAT(plan.hub.ports, SizeIs(16));
  // Every rank must come to the same ports, and another step to others.
  EXPECT_EQ(plan.hub.ports, plan_meeting(info, environment, {}).hub.ports);
  auto other = environment;
  other.set("SLURM_STEP_ID", "4");
  EXPECT_NE(plan.hub.ports, plan_meeting(info, other, {}).hub.ports);
}

TEST(MeetingPlan, MeetsOverMpiWhereAProcessManagerServesIt) {
  auto info = launched(LaunchSource::kSlurm, 4);
  info.has_process_manager = true;
  const Environment environment(Variables{{"SLURM_STEP_NODELIST", "n[1-2]"}});
  EXPECT_EQ(plan_meeting(info, environment, facts(true)).method,
            MeetingMethod::kMpi);
  EXPECT_EQ(plan_meeting(info, environment, facts(false)).method,
            MeetingMethod::kTcp);
}

// Recorded: OpenMPI aborts in MPI_Init under srun --mpi=pmi2.
TEST(MeetingPlan, MeetsSrunsPmiOverMpiOnlyIfThisMpiSpeaksIt) {
  const Environment environment({{"SLURM_JOB_ID", "17"},
                                 {"SLURM_STEP_ID", "3"},
                                 {"SLURM_PROCID", "0"},
                                 {"SLURM_STEP_NUM_TASKS", "4"},
                                 {"SLURM_STEP_NODELIST", "node[1-2]"},
                                 {"PMI_RANK", "0"},
                                 {"PMI_SIZE", "4"}});
  const auto info = detect_launch(environment);
  auto open_mpi = facts(true);
  EXPECT_EQ(plan_meeting(info, environment, open_mpi).method,
            MeetingMethod::kTcp);
  EXPECT_EQ(plan_meeting(info, environment, open_mpi).hub.token,
            "slurm:17.3:0");
  open_mpi.mpi_speaks_pmi = true;
  EXPECT_EQ(plan_meeting(info, environment, open_mpi).method,
            MeetingMethod::kMpi);
}

TEST(MeetingPlan, MeetsTorchrunOverTcpEvenWithMpi) {
  EXPECT_EQ(plan_meeting(launched(LaunchSource::kTorchrun, 2), master(),
                         facts(true, true))
                .method,
            MeetingMethod::kTcp);
}

TEST(MeetingPlan, SaysWhatToSetWhenThereIsNoMeetingPoint) {
  try {
    plan_meeting(launched(LaunchSource::kOpenMpi, 2), {}, {});
    ADD_FAILURE() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("MASTER_ADDR"));
    EXPECT_THAT(error.what(), HasSubstr("OpenMPI mpirun"));
  }
}

TEST(MeetingPlan, ReadsEveryInitMethod) {
  const auto info = launched(LaunchSource::kArguments, 2);
  const auto plan = [&](const char* url) {
    return plan_meeting(info, {}, by_url(url));
  };
  EXPECT_EQ(plan("mpi://").method, MeetingMethod::kMpi);
  EXPECT_EQ(plan("file:///tmp/x").path, "/tmp/x");
  EXPECT_THAT(plan("tcp://[::1]:4711").hub.hosts, ElementsAre("::1"));
  EXPECT_THAT(plan("tcp://[::1]:4711 ").hub.ports, ElementsAre(4711));
  for (const char* bad : {"tcp://", "tcp://host", "tcp://h:x", "tcp://h:0",
                          "tcp://h:65536", "nccl://h:1", "file://x"})
    EXPECT_THROW(plan(bad), InvalidArgument) << bad;
}

TEST(MeetingPlan, TellsTorchrunJobsOfOneNodeApart) {
  const Environment environment(
      {{"TORCHELASTIC_RUN_ID", "none"}, {"TORCHELASTIC_RESTART_COUNT", "2"}});
  const auto info = launched(LaunchSource::kTorchrun, 2, 2);
  EXPECT_EQ(job_token(info, environment, 77), "torchrun:none:2:77");
  EXPECT_EQ(job_token(launched(LaunchSource::kTorchrun, 4, 2), environment, 77),
            "torchrun:none:2");
}

TEST(HostAndPort, ReadsBareAndBracketedAddresses) {
  EXPECT_EQ(parse_host_and_port("::1", 5).host, "::1");
  EXPECT_EQ(parse_host_and_port("[::1]", 5).host, "::1");
  EXPECT_EQ(parse_host_and_port("localhost ", 5).host, "localhost");
  EXPECT_EQ(parse_host_and_port("tcp://a:7", std::nullopt).port, 7);
  EXPECT_EQ(parse_host_and_port("[fe80::1]:7", std::nullopt).port, 7);
}

}  // namespace
}  // namespace ddp
