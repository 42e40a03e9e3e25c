#include "libddp/bootstrap/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "kernels/core/error.h"

namespace ddp {
namespace {

// fork() is process-wide, and so is this list; never destroyed, since forks
// can happen until the very end.
struct OpenDescriptors {
  std::mutex mutex;
  std::vector<int> descriptors;
};

OpenDescriptors& open_descriptors() {
  static auto& list = *new OpenDescriptors;
  return list;
}

// The lock is held over fork() so that the child finds the list whole.
void before_fork() { open_descriptors().mutex.lock(); }
void after_fork_in_parent() { open_descriptors().mutex.unlock(); }
void after_fork_in_child() {
  auto& list = open_descriptors();
  for (const int descriptor : list.descriptors) ::close(descriptor);
  list.descriptors.clear();
  list.mutex.unlock();
}

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  });
}

}  // namespace

void close_in_forked_child(int descriptor) {
  watch_forks();
  auto& list = open_descriptors();
  std::lock_guard lock(list.mutex);
  list.descriptors.push_back(descriptor);
}

void keep_in_forked_child(int descriptor) noexcept {
  auto& list = open_descriptors();
  std::lock_guard lock(list.mutex);
  auto& all = list.descriptors;
  all.erase(std::remove(all.begin(), all.end(), descriptor), all.end());
}

ProcessGuard::ProcessGuard() noexcept : pid_(::getpid()) {}

bool ProcessGuard::is_in_maker() const noexcept { return pid_ == ::getpid(); }

void ProcessGuard::check(std::string_view what) const {
  DDP_EXPECT(is_in_maker(), InvalidArgument, what, ": this handle belongs to ",
             "process ", pid_, ", and process ", ::getpid(),
             " is a fork of it; use it in the parent, or start processes of "
             "their own that call init()");
}

}  // namespace ddp
