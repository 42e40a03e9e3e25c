#include "libddp/bootstrap/failure_watch.h"

#include <exception>
#include <utility>

#include "libddp/base/log.h"

namespace ddp {

FailureWatch::~FailureWatch() {
  {
    std::lock_guard lock(mutex_);
    callbacks_.clear();
  }
  if (!caller_.joinable()) return;
  // A callback may drop the last handle to the world, and so end up here.
  if (caller_.get_id() == std::this_thread::get_id()) {
    caller_.detach();
  } else {
    caller_.join();
  }
}

void FailureWatch::report(const Failure& failure) {
  std::lock_guard lock(mutex_);
  if (first_) return;
  first_ = failure;
  if (!callbacks_.empty()) caller_ = std::thread([this] { call_all(); });
}

std::optional<Failure> FailureWatch::first() const {
  std::lock_guard lock(mutex_);
  return first_;
}

int FailureWatch::add(ControlPlane::FailureCallback callback) {
  std::unique_lock lock(mutex_);
  const int id = next_id_++;
  if (!first_) {
    callbacks_.emplace(id, std::move(callback));
    return id;
  }
  const Failure failure = *first_;
  lock.unlock();
  call(callback, failure);
  return id;
}

void FailureWatch::remove(int id) {
  std::unique_lock lock(mutex_);
  callbacks_.erase(id);
  // From inside the callback itself there is nothing to wait for.
  if (caller_.get_id() == std::this_thread::get_id()) return;
  changed_.wait(lock, [&] { return running_id_ != id; });
}

void FailureWatch::call_all() {
  std::unique_lock lock(mutex_);
  while (!callbacks_.empty()) {
    const auto next = callbacks_.extract(callbacks_.begin());
    running_id_ = next.key();
    const Failure failure = *first_;
    lock.unlock();
    call(next.mapped(), failure);
    lock.lock();
    running_id_ = 0;
    changed_.notify_all();
  }
}

void FailureWatch::call(const ControlPlane::FailureCallback& callback,
                        const Failure& failure) noexcept {
  try {
    callback(failure);
  } catch (const std::exception& error) {
    log(LogLevel::kError,
        std::string("a failure callback threw: ") + error.what());
  }
}

}  // namespace ddp
