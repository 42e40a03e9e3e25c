/// \file
/// What happens to worlds that still exist when the process exits.
#pragma once

#include <functional>

namespace ddp {

/// Calls `hook` with the exit status once exit() begins or main() returns,
/// unless it has been removed. Hooks run in no order; in a forked child they
/// do not run. After them MPI is finalised, if libddp began it and the status
/// is 0. Returns an id.
int add_exit_hook(std::function<void(int status)> hook);
/// Waits if the hook is running on another thread.
void remove_exit_hook(int id) noexcept;

/// MPI has just begun: what it does at exit must run after the hooks.
void renew_exit_handler();

/// A world has failed: at exit the others are not waited for in MPI for long.
void note_failure_for_exit() noexcept;

}  // namespace ddp
