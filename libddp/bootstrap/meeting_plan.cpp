#include "libddp/bootstrap/meeting_plan.h"

#include "kernels/core/error.h"
#include "libddp/bootstrap/host_list.h"

namespace ddp {
namespace {

/// So many ports are tried where the port is ours to choose.
constexpr int kPortChoices = 16;

bool is_on_one_node(const LaunchInfo& launch) {
  return launch.local_size == launch.world_size;
}

bool is_by_srun(const LaunchInfo& launch, const Environment& environment) {
  return launch.source == LaunchSource::kSlurm ||
         (launch.source == LaunchSource::kPmi && is_sruns_task(environment));
}

bool has_agent_store(const Environment& environment) {
  return environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True";
}

/// LIBDDP_PORT, or else LIBDDP_PORT_RANGE; empty without both.
std::vector<std::uint16_t> wanted_ports(const Environment& environment,
                                        const std::string& token) {
  if (const auto port = environment.get_int("LIBDDP_PORT"))
    return {checked_port("LIBDDP_PORT", *port)};
  return ports_in_range(environment, token);
}

/// MASTER_PORT, or the ports after it where the agent's store has that one.
/// On one node nobody else needs to know the port: others may be tried.
std::vector<std::uint16_t> master_ports(const LaunchInfo& launch,
                                        const Environment& environment) {
  const auto master = environment.get_int("MASTER_PORT");
  DDP_EXPECT(master, InvalidArgument, "MASTER_PORT is not set (",
             launch.variables,
             "); set it to a free port of rank 0, or set "
             "LIBDDP_PORT");
  const auto first = checked_port(
      "MASTER_PORT", *master + (has_agent_store(environment) ? 1 : 0));
  return ports_from(first, is_on_one_node(launch) ? kPortChoices : 1);
}

/// Below the ports that the system gives out by itself.
std::vector<std::uint16_t> slurm_ports(const std::string& token) {
  constexpr std::uint64_t kFirst = 23000;
  constexpr std::uint64_t kCount = 8000;
  return ports_from(
      static_cast<std::uint16_t>(kFirst + stable_hash(token) % kCount),
      kPortChoices);
}

HubAddress address_by_master(const LaunchInfo& launch,
                             const Environment& environment,
                             const std::string& token) {
  const auto host = environment.get("MASTER_ADDR");
  DDP_EXPECT(host, InvalidArgument, name(launch.source), " started ",
             launch.world_size,
             " ranks, but where do they meet? Set "
             "MASTER_ADDR and MASTER_PORT to an address of rank 0, or give "
             "init_method \"tcp://host:port\" or \"file:///path\"");
  HubAddress address;
  address.hosts = {parse_host_and_port(*host, 1).host};
  address.ports = wanted_ports(environment, token);
  if (address.ports.empty()) address.ports = master_ports(launch, environment);
  address.token = token;
  address.origin = quote_variables(
      environment, {"MASTER_ADDR",
                    environment.has("LIBDDP_PORT")         ? "LIBDDP_PORT"
                    : environment.has("LIBDDP_PORT_RANGE") ? "LIBDDP_PORT_RANGE"
                                                           : "MASTER_PORT"});
  return address;
}

/// Rank 0 is on the step's first node. Where names mean nothing to the
/// resolver, this node itself and the one that srun ran on are tried too: the
/// job token tells whether rank 0 is there.
HubAddress address_by_slurm(const LaunchInfo& launch,
                            const Environment& environment,
                            const std::string& token) {
  const auto list = environment.get("SLURM_STEP_NODELIST");
  DDP_EXPECT(list, InvalidArgument,
             "SLURM_STEP_NODELIST is not set; set "
             "MASTER_ADDR and MASTER_PORT to an address of rank 0");
  HubAddress address;
  const auto first = expand_host_list(*list).front();
  address.hosts = {first};
  if (environment.get("SLURMD_NODENAME") == first || is_on_one_node(launch))
    address.hosts.push_back("127.0.0.1");
  if (const auto srun_host = environment.get("SLURM_LAUNCH_NODE_IPADDR"))
    address.hosts.push_back(*srun_host);
  address.ports = wanted_ports(environment, token);
  if (address.ports.empty()) address.ports = slurm_ports(token);
  address.token = token;
  address.origin = quote_variables(
      environment,
      {"SLURM_STEP_NODELIST", "SLURM_JOB_ID", "SLURM_STEP_ID", "MASTER_ADDR"});
  return address;
}

HubAddress address_by_url(const std::string& url,
                          const Environment& environment,
                          const std::string& token) {
  const auto wanted = wanted_ports(environment, token);
  const auto parsed = parse_host_and_port(
      url, wanted.empty() ? std::nullopt : std::optional(wanted.front()));
  return {{parsed.host}, {parsed.port}, token, "init_method " + url};
}

/// The address is told by other means, so any port will do.
HubAddress any_port(const Environment& environment, const std::string& token) {
  HubAddress address;
  address.ports = wanted_ports(environment, token);
  address.origin =
      address.ports.empty()
          ? "any free port"
          : quote_variables(environment, {"LIBDDP_PORT", "LIBDDP_PORT_RANGE"});
  if (address.ports.empty()) address.ports = {0};
  address.token = token;
  return address;
}

MeetingMethod method_by_url(const std::string& url) {
  if (url.starts_with("mpi://")) return MeetingMethod::kMpi;
  if (url.starts_with("tcp://")) return MeetingMethod::kTcp;
  if (url.starts_with("file:///")) return MeetingMethod::kFile;
  throw InvalidArgument(
      concat("init_method \"", url,
             "\" is unknown; expected "
             "\"tcp://host:port\", \"file:///path\" or \"mpi://\""));
}

MeetingMethod method_by_launch(const LaunchInfo& launch,
                               const Environment& environment,
                               const MeetingFacts& facts) {
  const bool can_mpi =
      facts.has_mpi && (launch.has_process_manager || facts.is_mpi_running);
  switch (launch.source) {
    case LaunchSource::kAlone:
      return facts.is_mpi_running ? MeetingMethod::kMpi : MeetingMethod::kNone;
    case LaunchSource::kOpenMpi:
      if (can_mpi) return MeetingMethod::kMpi;
      break;
    case LaunchSource::kPmi:
      if (can_mpi && (facts.mpi_speaks_pmi || environment.has("PMIX_RANK") ||
                      facts.is_mpi_running))
        return MeetingMethod::kMpi;
      break;
    case LaunchSource::kSlurm:
      if (facts.has_mpi && launch.has_process_manager)
        return MeetingMethod::kMpi;
      break;
    case LaunchSource::kArguments:
      if (can_mpi && !environment.has("MASTER_ADDR") && launch.world_size > 1)
        return MeetingMethod::kMpi;
      break;
    case LaunchSource::kTorchrun: break;
  }
  return launch.world_size == 1 ? MeetingMethod::kNone : MeetingMethod::kTcp;
}

}  // namespace

std::string_view name(MeetingMethod method) noexcept {
  switch (method) {
    case MeetingMethod::kMpi: return "mpi";
    case MeetingMethod::kTcp: return "tcp";
    case MeetingMethod::kFile: return "file";
    case MeetingMethod::kNone: break;
  }
  return "no";
}

std::string job_token(const LaunchInfo& launch, const Environment& environment,
                      std::int64_t parent_pid) {
  const auto value = [&](const char* name) {
    return environment.get(name).value_or("0");
  };
  if (const auto token = environment.get("LIBDDP_JOB_TOKEN")) return *token;
  if (launch.source == LaunchSource::kTorchrun &&
      environment.has("TORCHELASTIC_RUN_ID")) {
    auto token = concat("torchrun:", value("TORCHELASTIC_RUN_ID"), ":",
                        value("TORCHELASTIC_RESTART_COUNT"));
    // All workers of one node are children of one agent, which tells jobs
    // apart that share the default run id.
    if (is_on_one_node(launch)) token += concat(":", parent_pid);
    return token;
  }
  if (is_by_srun(launch, environment))
    return concat("slurm:", value("SLURM_JOB_ID"), ".", value("SLURM_STEP_ID"),
                  ":", value("SLURM_RESTART_COUNT"));
  return "";
}

MeetingPlan plan_meeting(const LaunchInfo& launch,
                         const Environment& environment,
                         const MeetingFacts& facts) {
  const auto token = job_token(launch, environment, facts.parent_pid);
  const auto& url = facts.init_method;
  MeetingPlan plan;
  plan.method = facts.has_mpi_communicator ? MeetingMethod::kMpi
                : !url.empty()             ? method_by_url(url)
                               : method_by_launch(launch, environment, facts);
  switch (plan.method) {
    case MeetingMethod::kNone: break;
    case MeetingMethod::kMpi: plan.hub = any_port(environment, token); break;
    case MeetingMethod::kFile:
      plan.hub = any_port(environment, token);
      plan.path = url.substr(std::string_view("file://").size());
      break;
    case MeetingMethod::kTcp:
      plan.hub =
          !url.empty() ? address_by_url(url, environment, token)
          : is_by_srun(launch, environment) && !environment.has("MASTER_ADDR")
              ? address_by_slurm(launch, environment, token)
              : address_by_master(launch, environment, token);
      break;
  }
  return plan;
}

}  // namespace ddp
