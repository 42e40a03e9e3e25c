#include "libddp/bootstrap/exit_hooks.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>

#include "libddp/bootstrap/mpi_rendezvous.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;

/// Others may have much to do after this rank's end, such as a last file.
constexpr auto kPatience = 30min;
constexpr auto kPatienceAfterFailure = 5s;

// A process exits once, so this is process-wide; never destroyed, since it is
// used by what runs at exit.
struct Hooks {
  std::recursive_mutex mutex;
  std::map<int, std::function<void(int)>> hooks;
  int next_id = 1;
  bool has_failed = false;
  pid_t pid = 0;
};

Hooks& all_hooks() {
  static auto& hooks = *new Hooks;
  return hooks;
}

void run_hooks(int status) {
  Hooks& all = all_hooks();
  if (all.pid != ::getpid()) return;
  bool has_failed = false;
  {
    std::lock_guard lock(all.mutex);
    while (!all.hooks.empty())
      all.hooks.extract(all.hooks.begin()).mapped()(status);
    has_failed = all.has_failed;
  }
  // A rank that failed leaves at once; its launcher ends the others.
  if (status == 0)
    finalize_mpi(Deadline::in(
        has_failed ? Deadline::Clock::duration(kPatienceAfterFailure)
                   : kPatience));
}

#ifdef __GLIBC__
void at_exit(int status, void*) { run_hooks(status); }
void register_handler() { ::on_exit(at_exit, nullptr); }
#else
void at_exit() { run_hooks(0); }
void register_handler() { std::atexit(at_exit); }
#endif

}  // namespace

int add_exit_hook(std::function<void(int status)> hook) {
  Hooks& all = all_hooks();
  std::lock_guard lock(all.mutex);
  if (all.pid != ::getpid()) {
    // The first ever, or the first in a forked child, whose copies of the
    // parent's hooks mean nothing here.
    if (all.pid == 0) register_handler();
    all.hooks.clear();
    all.pid = ::getpid();
  }
  const int id = all.next_id++;
  all.hooks.emplace(id, std::move(hook));
  return id;
}

void renew_exit_handler() { register_handler(); }

void remove_exit_hook(int id) noexcept {
  Hooks& all = all_hooks();
  std::lock_guard lock(all.mutex);
  all.hooks.erase(id);
}

void note_failure_for_exit() noexcept {
  Hooks& all = all_hooks();
  std::lock_guard lock(all.mutex);
  all.has_failed = true;
}

}  // namespace ddp
