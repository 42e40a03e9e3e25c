#include "libddp/bootstrap/failure_watch.h"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "libddp/base/log.h"

namespace ddp {
namespace {

void call(const ControlPlane::FailureCallback& callback,
          const Failure& failure) noexcept {
  try {
    callback(failure);
  } catch (const std::exception& error) {
    log(LogLevel::kError,
        std::string("a failure callback threw: ") + error.what());
  }
}

}  // namespace

struct FailureWatch::Shared {
  /// Calls one callback after the other, without the lock.
  void call_all() {
    std::unique_lock lock(mutex);
    while (!callbacks.empty()) {
      const auto next = callbacks.extract(callbacks.begin());
      running_id = next.key();
      const Failure failure = *first;
      lock.unlock();
      call(next.mapped(), failure);
      lock.lock();
      running_id = 0;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Failure> first;
  std::map<int, ControlPlane::FailureCallback> callbacks;
  int next_id = 1;
  int running_id = 0;
  std::thread caller;
};

FailureWatch::FailureWatch() : shared_(std::make_shared<Shared>()) {}

FailureWatch::~FailureWatch() {
  std::thread caller;
  {
    std::lock_guard lock(shared_->mutex);
    shared_->callbacks.clear();
    caller = std::move(shared_->caller);
  }
  if (!caller.joinable()) return;
  if (caller.get_id() == std::this_thread::get_id()) {
    caller.detach();
  } else {
    caller.join();
  }
}

void FailureWatch::report(const Failure& failure) {
  std::lock_guard lock(shared_->mutex);
  if (shared_->first) return;
  shared_->first = failure;
  if (!shared_->callbacks.empty())
    shared_->caller = std::thread([shared = shared_] { shared->call_all(); });
}

std::optional<Failure> FailureWatch::first() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->first;
}

int FailureWatch::add(ControlPlane::FailureCallback callback) {
  std::unique_lock lock(shared_->mutex);
  const int id = shared_->next_id++;
  if (!shared_->first) {
    shared_->callbacks.emplace(id, std::move(callback));
    return id;
  }
  const Failure failure = *shared_->first;
  lock.unlock();
  call(callback, failure);
  return id;
}

void FailureWatch::remove(int id) {
  std::unique_lock lock(shared_->mutex);
  shared_->callbacks.erase(id);
  // From inside the callback itself there is nothing to wait for.
  if (shared_->caller.get_id() == std::this_thread::get_id()) return;
  shared_->changed.wait(lock, [&] { return shared_->running_id != id; });
}

}  // namespace ddp
