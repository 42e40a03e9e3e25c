#include "libddp/backends/mpi/communication_thread.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <exception>
#include <utility>

#include "kernels/core/error.h"
#include "libddp/backends/mpi/backoff.h"

namespace ddp::mpi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kGrace{5};
// A small operation takes less, start to end.
constexpr std::chrono::microseconds kYielding{60};

// Sleeps of 10 us take 60 where the kernel may add its default slack.
void ask_for_exact_sleeps() { (void)prctl(PR_SET_TIMERSLACK, 1000UL); }

}  // namespace

// One operation, between the caller and the thread.
class CommunicationThread::State final : public Work::State {
 public:
  explicit State(std::string what) : what_(std::move(what)) {}

  void begin() { span_.started = Clock::now(); }

  void end(const Fault* fault) {
    const std::lock_guard lock(mutex_);
    span_.ended = Clock::now();
    if (fault != nullptr) fault_.set(fault->kind(), fault->text());
    is_done_.store(true, std::memory_order_release);
    changed_.notify_all();
  }

  void wait(Deadline deadline) override {
    // Short operations end while the caller yields, without a system call.
    Backoff backoff(kYielding);
    while (!is_complete() && backoff.is_yielding()) backoff.pause();
    if (!is_complete()) {
      std::unique_lock lock(mutex_);
      DDP_EXPECT(changed_.wait_until(lock, deadline.at(),
                                     [&] { return is_complete(); }),
                 Timeout, what_, " is still in flight after ",
                 deadline.seconds_given(),
                 " s; wait on, or abort the communicator");
    }
    fault_.check();
  }

  // The operation has a deadline of its own, so this ends.
  void block(StreamView) override { wait(Deadline::never()); }

  bool is_complete() const noexcept override {
    return is_done_.load(std::memory_order_acquire);
  }

  std::optional<Work::Span> span() const noexcept override {
    if (!is_complete() || fault_.is_set()) return {};
    return span_;
  }

 private:
  const std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> is_done_ = false;
  Fault fault_;
  Work::Span span_;
};

CommunicationThread::CommunicationThread(Group group, Milliseconds timeout)
    : group_(std::move(group)),
      timeout_(timeout),
      owner_(getpid()),
      thread_([this] { run(); }) {}

CommunicationThread::~CommunicationThread() {
  if (getpid() != owner_) {  // a forked child has no such thread
    thread_.detach();
    return;
  }
  {
    std::unique_lock lock(mutex_);
    is_closing_ = true;
    changed_.notify_all();
    if (std::uncaught_exceptions() == 0) {
      changed_.wait_for(lock, kGrace,
                        [&] { return unfinished_ == 0 || is_stopped_; });
    }
  }
  if (unfinished_ != 0) {
    fault_.set(ErrorKind::kError,
               "the communicator was destroyed with operations in flight");
  }
  thread_.join();
}

void CommunicationThread::check() const {
  DDP_EXPECT(getpid() == owner_, InvalidArgument, "process ", getpid(),
             " was forked from ", owner_,
             " and cannot use its communicators; open its own");
  fault_.check();
}

Work CommunicationThread::issue(std::string what, Task task) {
  check();
  auto state = std::make_shared<State>(what);
  const std::lock_guard lock(mutex_);
  if (is_stopped_) fault_.throw_it();
  jobs_.push_back({std::move(what), std::move(task), state});
  ++unfinished_;
  ++queued_;
  if (is_asleep_) changed_.notify_all();
  return Work(std::move(state));
}

void CommunicationThread::abort(ErrorKind kind,
                                const std::string& reason) noexcept {
  // The thread looks at the fault each time it polls.
  fault_.set(kind, reason);
}

void CommunicationThread::run() {
  ask_for_exact_sleeps();
  Job job;
  while (next(job)) {
    if (!run_one(job)) {
      stop();
      return;
    }
    job = {};
  }
}

bool CommunicationThread::next(Job& job) {
  // The next operation often follows at once; being awake saves a wake-up.
  Backoff backoff(kYielding);
  while (queued_ == 0 && backoff.is_yielding()) backoff.pause();
  std::unique_lock lock(mutex_);
  is_asleep_ = true;
  changed_.wait(lock, [&] { return !jobs_.empty() || is_closing_; });
  is_asleep_ = false;
  if (jobs_.empty()) return false;
  job = std::move(jobs_.front());
  jobs_.pop_front();
  --queued_;
  return true;
}

bool CommunicationThread::run_one(Job& job) {
  job.state->begin();
  try {
    fault_.check();
    const Bounds bounds{&group_, &fault_, Deadline::in(timeout_), job.what};
    job.task(bounds);
  } catch (const std::exception& error) {
    fault_.set(kind_of(error), error.what());
  }
  job.state->end(fault_.is_set() ? &fault_ : nullptr);
  if (fault_.is_set()) return false;
  const std::lock_guard lock(mutex_);
  if (--unfinished_ == 0 && is_closing_) changed_.notify_all();
  return true;
}

void CommunicationThread::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  for (const Job& job : jobs_) job.state->end(&fault_);
  jobs_.clear();
  queued_ = 0;
  unfinished_ = 0;
  changed_.notify_all();
}

}  // namespace ddp::mpi
