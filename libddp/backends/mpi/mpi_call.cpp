#include "libddp/backends/mpi/mpi_call.h"

namespace ddp::mpi {
namespace {

int thread_level() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  return provided;
}

std::mutex& call_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

CallLock::CallLock() {
  // MPI keeps its level from start to end.
  static const bool is_needed = thread_level() < MPI_THREAD_MULTIPLE;
  if (is_needed) lock_ = std::unique_lock(call_mutex());
}

void check_thread_level() {
  DDP_EXPECT(is_alive(), Unavailable,
             "backend mpi needs MPI initialised and not yet finalised; let "
             "ddp::init() start it, or call MPI_Init_thread before");
  const int level = thread_level();
  DDP_EXPECT(level >= MPI_THREAD_SERIALIZED, Unavailable,
             "backend mpi calls MPI from a thread of its own, but MPI was "
             "initialised with thread level ",
             level,
             "; ask MPI_Init_thread for MPI_THREAD_MULTIPLE or "
             "MPI_THREAD_SERIALIZED");
}

bool is_alive() noexcept {
  int is_initialised = 0;
  int is_finalised = 0;
  MPI_Initialized(&is_initialised);
  MPI_Finalized(&is_finalised);
  return is_initialised != 0 && is_finalised == 0;
}

void throw_error(int code, const char* expression) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  int error_class = MPI_ERR_OTHER;
  {
    const CallLock lock;
    MPI_Error_string(code, text, &length);
    MPI_Error_class(code, &error_class);
  }
  if (error_class == MPI_ERR_TRUNCATE) {
    throw InvalidArgument(
        concat("ranks gave different counts of elements to one operation (",
               text, "); give equal counts on all ranks"));
  }
  throw DeviceError(concat(expression, " failed: ", text));
}

}  // namespace ddp::mpi
