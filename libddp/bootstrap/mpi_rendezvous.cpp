#include "libddp/bootstrap/mpi_rendezvous.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "kernels/core/error.h"
#include "libddp/base/log.h"
#include "libddp/bootstrap/exit_hooks.h"
#include "libddp/bootstrap/wire_format.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;

// MPI itself is process-wide, and so is the knowledge of who began it.
// A forked child inherits the memory of MPI but not MPI.
std::atomic<pid_t> initializer{0};

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw DeviceError(concat(what, " failed: ", text));
}

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

bool is_open_mpi() {
  return library_version().find("Open MPI") != std::string::npos;
}

std::string name_the_fix(const LaunchInfo& launch) {
  if (launch.source == LaunchSource::kSlurm || launch.variables.empty())
    return is_open_mpi() ? "start with srun --mpi=pmix"
                         : "start with srun --mpi=pmi2";
  return "start with the mpirun of the same MPI, or under Slurm with srun "
         "--mpi=pmix (OpenMPI) or --mpi=pmi2 (MPICH)";
}

/// OpenMPI would abort the process in MPI_Init; better an error.
void check_process_manager(const LaunchInfo& launch,
                           const Environment& environment) {
  const bool is_served = environment.has("PMIX_RANK") ||
                         (mpi_speaks_pmi() && environment.has("PMI_RANK"));
  DDP_EXPECT(!is_sruns_task(environment) || is_served ||
                 environment.get_int("SLURM_STEP_NUM_TASKS").value_or(1) == 1,
             InvalidArgument, "srun started ",
             environment.get("SLURM_STEP_NUM_TASKS").value_or("?"),
             " tasks without a process manager that ", library_version(),
             " knows, so each would be an MPI world of its own: ",
             name_the_fix(launch), ", or use no init_method to meet over TCP");
}

void initialize(const LaunchInfo& launch, const Environment& environment) {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  DDP_EXPECT(!is_finalized, Unavailable,
             "MPI has been finalised in this "
             "process and cannot be begun again; call init() before "
             "MPI_Finalize");
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  int provided = MPI_THREAD_SINGLE;
  if (is_initialized) {
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
  } else {
    check_process_manager(launch, environment);
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided),
          "MPI_Init_thread");
    initializer = ::getpid();
    renew_exit_handler();
  }
  DDP_EXPECT(
      provided >= MPI_THREAD_SERIALIZED, Unavailable, "MPI gives thread level ",
      provided, " where MPI_THREAD_SERIALIZED (", MPI_THREAD_SERIALIZED,
      ") is needed; ",
      is_initialized ? "initialise it with MPI_Init_thread(MPI_THREAD_MULTIPLE)"
                     : "use an MPI built with thread support");
}

/// A launcher that MPI does not know starts worlds of one.
void check_world(const LaunchInfo& launch, const Environment& environment) {
  int size = 0;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  // Ranks of mpirun inherit the step that started its daemons.
  const auto step_tasks =
      is_sruns_task(environment)
          ? environment.get_int("SLURM_STEP_NUM_TASKS").value_or(size)
          : size;
  DDP_EXPECT(size == step_tasks, InvalidArgument, "srun started ", step_tasks,
             " tasks (SLURM_STEP_NUM_TASKS) but ", library_version(), " sees ",
             size, ": ", name_the_fix(launch));
}

void check_size(const LaunchInfo& launch, int size) {
  if (launch.source == LaunchSource::kAlone) return;
  DDP_EXPECT(size == launch.world_size, InvalidArgument, name(launch.source),
             " says ", launch.world_size, " ranks (", launch.variables,
             ") but ", library_version(), " sees ", size, ": ",
             name_the_fix(launch));
}

/// Waits without holding a core. True when done, false at the deadline.
bool wait_for(MPI_Request& request, Deadline deadline) {
  auto pause = 20us;
  for (;;) {
    int is_done = 0;
    check(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done) return true;
    if (deadline.has_passed()) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(pause * 2, 2ms);
  }
}

void broadcast_bytes(MPI_Comm communicator, void* data, std::size_t bytes,
                     Deadline deadline) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibcast(data, static_cast<int>(bytes), MPI_BYTE, 0, communicator,
                   &request),
        "MPI_Ibcast");
  DDP_EXPECT(wait_for(request, deadline), Timeout,
             "rank 0 did not tell its address over MPI within ",
             deadline.seconds_given(), " s");
}

/// What `make` returns or throws, as bytes.
std::string made(const std::function<std::string()>& make) {
  WireWriter out;
  try {
    const auto result = make();
    out.number(-1);
    out.text(result);
  } catch (const std::exception& error) {
    out.number(static_cast<std::int64_t>(kind_of(error)));
    out.text(error.what());
  }
  return out.take();
}

}  // namespace

bool has_mpi() noexcept { return true; }

bool mpi_speaks_pmi() noexcept {
#ifdef OPEN_MPI
  return false;
#else
  return true;
#endif
}

bool is_mpi_running() noexcept {
  int is_initialized = 0;
  int is_finalized = 0;
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  return is_initialized != 0 && is_finalized == 0;
}

MpiMeeting meet_over_mpi(const LaunchInfo& launch,
                         const Environment& environment,
                         std::optional<int> communicator) {
  DDP_EXPECT(!communicator || is_mpi_running(), InvalidArgument,
             "init() was given an MPI communicator, but MPI is not running; "
             "call MPI_Init_thread first");
  initialize(launch, environment);
  check_world(launch, environment);
  const MPI_Comm base = communicator
                            ? MPI_Comm_f2c(static_cast<MPI_Fint>(*communicator))
                            : MPI_COMM_WORLD;
  MpiMeeting meeting;
  check(MPI_Comm_size(base, &meeting.size), "MPI_Comm_size");
  if (!communicator) check_size(launch, meeting.size);
  int base_rank = 0;
  check(MPI_Comm_rank(base, &base_rank), "MPI_Comm_rank");
  const bool keeps_order =
      communicator || launch.source == LaunchSource::kAlone;
  MPI_Comm ours = MPI_COMM_NULL;
  // A split by rank is a duplicate whose ranks are the launcher's or the
  // program's. It is not freed: MPI_Comm_free is collective, and a world may
  // end on one rank while others have failed.
  check(MPI_Comm_split(base, 0, keeps_order ? base_rank : launch.rank, &ours),
        "MPI_Comm_split");
  check(MPI_Comm_set_errhandler(ours, MPI_ERRORS_RETURN),
        "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(ours, &meeting.rank), "MPI_Comm_rank");
  DDP_EXPECT(keeps_order || meeting.rank == launch.rank, InvalidArgument,
             "rank ", launch.rank, " (", launch.variables, ") is number ",
             meeting.rank, " over MPI: ranks 0 to ", meeting.size - 1,
             " must each exist once");
  meeting.communicator = static_cast<int>(MPI_Comm_c2f(ours));
  return meeting;
}

std::string broadcast_over_mpi(const MpiMeeting& meeting,
                               const std::function<std::string()>& make,
                               Deadline deadline) {
  const MPI_Comm communicator =
      MPI_Comm_f2c(static_cast<MPI_Fint>(meeting.communicator));
  std::string bytes = meeting.rank == 0 ? made(make) : std::string();
  std::uint64_t size = bytes.size();
  broadcast_bytes(communicator, &size, sizeof(size), deadline);
  bytes.resize(size);
  broadcast_bytes(communicator, bytes.data(), bytes.size(), deadline);
  WireReader in(bytes);
  const auto kind = in.small_number();
  auto text = in.text();
  if (kind >= 0) raise(static_cast<ErrorKind>(kind), text);
  return text;
}

void finalize_mpi(Deadline deadline) noexcept {
  if (initializer != ::getpid() || !is_mpi_running()) return;
  try {
    // MPI_Finalize cannot be given a limit. So all ranks meet first, in a way
    // that can be given up.
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
    if (!wait_for(request, deadline)) {
      log(LogLevel::kWarning,
          concat("not all ranks ended within ", deadline.seconds_given(),
                 " s of this one; leaving without MPI_Finalize"));
      return;
    }
    MPI_Finalize();
  } catch (const std::exception& error) {
    log(LogLevel::kWarning, error.what());
  }
}

}  // namespace ddp
