/// \file
/// DDP_MPI: one call of MPI, checked, and serialised where MPI asks for it.
#pragma once

#include <mpi.h>

#include <mutex>
#include <string>

#include "kernels/core/error.h"

namespace ddp::mpi {

/// Held during a call of MPI if MPI was initialised with
/// MPI_THREAD_SERIALIZED; free of cost with MPI_THREAD_MULTIPLE. The mutex is
/// process-wide because the rule that it serves is: one call at a time in the
/// whole process. It guards the calls of this folder.
class CallLock {
 public:
  CallLock();

 private:
  std::unique_lock<std::mutex> lock_;
};

/// Throws Unavailable unless MPI is initialised, and for calls from several
/// threads.
void check_thread_level();

/// Whether MPI can still be called.
bool is_alive() noexcept;

[[noreturn]] void throw_error(int code, const char* expression);

}  // namespace ddp::mpi

/// Calls `expression` and throws unless it gives MPI_SUCCESS: InvalidArgument
/// where a message was longer than its receiver asked for, else DeviceError.
#define DDP_MPI(expression)                             \
  do {                                                  \
    const int ddp_result = [&] {                        \
      const ::ddp::mpi::CallLock ddp_lock;              \
      return (expression);                              \
    }();                                                \
    if (ddp_result != MPI_SUCCESS) [[unlikely]]         \
      ::ddp::mpi::throw_error(ddp_result, #expression); \
  } while (false)
