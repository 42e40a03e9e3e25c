#include "libddp/bootstrap/launcher.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/core/error.h"
#include "libddp/bootstrap/host_list.h"

namespace ddp {
namespace {

/// Reads the numbers of one launcher and remembers their names for errors.
class LauncherVariables {
 public:
  LauncherVariables(const Environment& environment,
                    std::vector<std::string> names)
      : environment_(environment), names_(std::move(names)) {}

  std::optional<int> find(std::string_view name) const {
    const auto value = environment_.get_int(name);
    if (!value) return std::nullopt;
    DDP_EXPECT(*value >= std::numeric_limits<int>::min() &&
                   *value <= std::numeric_limits<int>::max(),
               InvalidArgument, "environment variable ", name, "=", *value,
               " is out of range");
    return static_cast<int>(*value);
  }
  std::string quote() const { return quote_variables(environment_, names_); }

  void expect(bool holds, std::string_view why) const {
    DDP_EXPECT(holds, InvalidArgument,
               "the launcher's variables contradict each other (", why,
               "): ", quote(),
               "; unset those that are left over from another "
               "launcher or start the program again");
  }

 private:
  const Environment& environment_;
  std::vector<std::string> names_;
};

void check_local(const LauncherVariables& variables, const LaunchInfo& info) {
  variables.expect(info.world_size >= 1, "the world has no rank");
  if (!info.local_rank || !info.local_size) return;
  variables.expect(*info.local_rank >= 0 && *info.local_rank < *info.local_size,
                   "the local rank is outside the local size");
  variables.expect(*info.local_size <= info.world_size,
                   "the local size exceeds the world size");
}

LaunchInfo plain_launch(const Environment& environment, LaunchSource source,
                        const std::vector<std::string>& names) {
  const LauncherVariables variables(environment, names);
  LaunchInfo info;
  info.source = source;
  info.rank = variables.find(names[0]).value_or(0);
  info.world_size = variables.find(names[1]).value_or(1);
  info.local_rank = variables.find(names[2]);
  info.local_size = variables.find(names[3]);
  info.variables = variables.quote();
  check_local(variables, info);
  return info;
}

LaunchInfo torchrun_launch(const Environment& environment) {
  return plain_launch(environment, LaunchSource::kTorchrun,
                      {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
}

LaunchInfo open_mpi_launch(const Environment& environment) {
  auto info = plain_launch(
      environment, LaunchSource::kOpenMpi,
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"});
  info.has_process_manager = true;
  return info;
}

LaunchInfo pmi_launch(const Environment& environment) {
  auto info = plain_launch(
      environment, LaunchSource::kPmi,
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"});
  info.has_process_manager = true;
  if (!info.local_rank && is_in_slurm_step(environment))
    info.local_rank =
        static_cast<int>(environment.get_int("SLURM_LOCALID").value_or(0));
  return info;
}

/// Fills the place on the node from the ids of this node's tasks.
void read_slurm_node(const Environment& environment,
                     const LauncherVariables& variables, LaunchInfo* info) {
  info->local_rank = variables.find("SLURM_LOCALID");
  if (const auto text = environment.get("SLURM_GTIDS")) {
    const auto ids = split_task_ids(*text);
    variables.expect(std::find(ids.begin(), ids.end(), info->rank) != ids.end(),
                     "SLURM_GTIDS lacks this task");
    info->local_size = static_cast<int>(ids.size());
  }
  if (const auto text = environment.get("SLURM_STEP_TASKS_PER_NODE")) {
    const auto counts = expand_tasks_per_node(*text);
    variables.expect(
        std::accumulate(counts.begin(), counts.end(), 0) == info->world_size,
        "the tasks per node do not add up to the step's tasks");
  }
}

LaunchInfo slurm_launch(const Environment& environment) {
  const LauncherVariables variables(
      environment, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                    "SLURM_GTIDS", "SLURM_STEP_TASKS_PER_NODE"});
  LaunchInfo info;
  info.source = LaunchSource::kSlurm;
  info.rank = variables.find("SLURM_PROCID").value_or(0);
  info.world_size = variables.find("SLURM_STEP_NUM_TASKS").value_or(1);
  info.variables = variables.quote();
  info.has_process_manager = environment.has("PMIX_RANK");
  variables.expect(info.rank < info.world_size,
                   "the task id is outside the step");
  read_slurm_node(environment, variables, &info);
  check_local(variables, info);
  return info;
}

/// RANK and WORLD_SIZE without LOCAL_RANK, as people export them by hand.
LaunchInfo hand_set_launch(const Environment& environment) {
  const std::vector<std::string> names{"RANK", "WORLD_SIZE", "MASTER_ADDR",
                                       "MASTER_PORT"};
  for (const auto& needed : names)
    DDP_EXPECT(environment.has(needed), InvalidArgument,
               "the variables of torchrun are incomplete: ",
               quote_variables(environment, names),
               "; set all four (and LOCAL_RANK, if known) or none");
  return torchrun_launch(environment);
}

LaunchInfo alone(const Environment& environment) {
  LaunchInfo info;
  info.variables = "no launcher's variables";
  if (environment.has("SLURM_JOB_ID") || environment.has("SLURM_NTASKS")) {
    info.notices.push_back(concat(
        "inside a Slurm allocation but not started by srun (",
        quote_variables(environment, {"SLURM_NTASKS", "SLURM_STEP_ID"}),
        "): running as one process; start the program with srun for more"));
  }
  return info;
}

LaunchInfo explicit_launch(int rank, int world_size) {
  LaunchInfo info;
  info.source = LaunchSource::kArguments;
  info.rank = rank;
  info.world_size = world_size;
  info.variables = concat("rank=", rank, ", world_size=", world_size);
  DDP_EXPECT(world_size >= 1, InvalidArgument, "init() was given ",
             info.variables, "; a world has at least one rank");
  return info;
}

}  // namespace

std::string_view name(LaunchSource source) noexcept {
  switch (source) {
    case LaunchSource::kArguments: return "explicit arguments";
    case LaunchSource::kTorchrun: return "torchrun";
    case LaunchSource::kOpenMpi: return "OpenMPI mpirun";
    case LaunchSource::kPmi: return "PMI (MPICH or Intel MPI)";
    case LaunchSource::kSlurm: return "Slurm srun";
    case LaunchSource::kAlone: break;
  }
  return "no launcher";
}

std::string quote_variables(const Environment& environment,
                            const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    if (!text.empty()) text += ", ";
    const auto value = environment.get(name);
    text += value ? name + "=" + *value : name + " is not set";
  }
  return text;
}

bool is_in_slurm_step(const Environment& environment) {
  const auto step = environment.get_int("SLURM_STEP_ID");
  // From here on step ids stand for the batch script, the interactive shell
  // and the like, which are no steps of srun's.
  constexpr std::int64_t kFirstReservedStep = 0xfffffff0;
  return step && *step >= 0 && *step < kFirstReservedStep &&
         environment.has("SLURM_STEP_NUM_TASKS") &&
         environment.has("SLURM_PROCID");
}

bool is_sruns_task(const Environment& environment) {
  return is_in_slurm_step(environment) &&
         !environment.has("OMPI_COMM_WORLD_SIZE") &&
         !environment.has("MPI_LOCALRANKID");
}

LaunchInfo detect_launch(const Environment& environment,
                         std::optional<int> rank,
                         std::optional<int> world_size) {
  DDP_EXPECT(rank.has_value() == world_size.has_value(), InvalidArgument,
             "init() was given ", rank ? "rank" : "world_size", " but not ",
             rank ? "world_size" : "rank", "; give both or neither");
  const auto has = [&](const char* name) { return environment.has(name); };
  if (rank) {
    auto info = explicit_launch(*rank, *world_size);
    info.has_process_manager =
        has("OMPI_COMM_WORLD_RANK") || has("PMIX_RANK") || has("PMI_RANK");
    return info;
  }
  if (has("RANK") && has("WORLD_SIZE") && has("LOCAL_RANK"))
    return torchrun_launch(environment);
  if (has("OMPI_COMM_WORLD_RANK") && has("OMPI_COMM_WORLD_SIZE"))
    return open_mpi_launch(environment);
  if (has("PMI_RANK") && has("PMI_SIZE")) return pmi_launch(environment);
  if (is_in_slurm_step(environment)) return slurm_launch(environment);
  if (has("RANK") || has("WORLD_SIZE")) return hand_set_launch(environment);
  return alone(environment);
}

void check_rank(const LaunchInfo& launch) {
  DDP_EXPECT(launch.rank >= 0 && launch.rank < launch.world_size,
             InvalidArgument, "rank ", launch.rank, " is outside a world of ",
             launch.world_size, " ranks (", launch.variables,
             "); ranks count from 0, so start no more processes than "
             "the world size");
}

}  // namespace ddp
