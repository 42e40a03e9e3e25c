#include "libddp/backends/nccl/connection.h"

#include <cuda_runtime_api.h>

#include <exception>
#include <optional>

#include "libddp/device/cuda_check.h"

namespace ddp::nccl {
namespace {

constexpr std::chrono::milliseconds kWatchPeriod{50};
constexpr std::chrono::seconds kGrace{5};
// How long the watchdog lets a call of NCCL come back before it aborts beside
// it; such a call waits for a peer and looks at the abort flag.
constexpr std::chrono::seconds kCallGrace{2};
constexpr std::size_t kMostFlights = 256;

bool runtime_is_alive() noexcept {
  int device = 0;
  return cudaGetDevice(&device) != cudaErrorCudartUnloading;
}

}  // namespace

Connection::Connection(ncclComm_t comm, Device device, int rank,
                       std::vector<std::string> names, Settings settings,
                       Milliseconds timeout)
    : comm_(comm),
      device_(device),
      rank_(rank),
      names_(std::move(names)),
      settings_(settings),
      timeout_(timeout),
      stream_(device, StreamPriority::kHigh),
      ready_(device),
      watchdog_([this] { watch(); }) {}

Connection::~Connection() {
  {
    std::unique_lock lock(mutex_);
    is_closing_ = true;
    if (std::uncaught_exceptions() == 0 && runtime_is_alive()) {
      // The watchdog lands them.
      changed_.notify_all();
      changed_.wait_for(lock, kGrace,
                        [&] { return flights_.empty() || fault_.is_set(); });
    }
    if (!flights_.empty()) {
      fault_.set(ErrorKind::kError,
                 "the communicator was destroyed with operations in flight");
    }
    changed_.notify_all();
  }
  watchdog_.join();
  if (!runtime_is_alive() || is_aborted_) return;
  try {
    const DeviceGuard guard(device_);
    (void)ncclCommDestroy(comm_);
  } catch (const Error&) {  // the device has failed: nothing to give back
  }
}

std::shared_ptr<Flight> Connection::run(const Operation& operation,
                                        StreamView producer,
                                        const Launch& launch) {
  const DeviceGuard guard(device_);
  const std::unique_lock call(call_mutex_);
  fault_.check();
  auto flight = std::make_shared<Flight>(operation, take_event());
  set_launching(&operation);
  try {
    ready_.record(producer);
    ready_.block(stream_);
    launch(comm_, static_cast<cudaStream_t>(stream_.view().handle));
    flight->end.record(stream_);
    fault_.check();
  } catch (const Error& error) {
    set_launching(nullptr);
    fail(error.kind(), error.what());
    fault_.check();  // an abort makes NCCL refuse the call: tell the reason
    throw;
  }
  set_launching(nullptr);
  const std::lock_guard lock(mutex_);
  if (flights_.size() >= kMostFlights) land_completed();
  flights_.push_back(flight);
  return flight;
}

void Connection::set_launching(const Operation* operation) {
  const std::lock_guard lock(mutex_);
  launching_ = operation;
  launching_deadline_ =
      operation ? Deadline::in(timeout_) : Deadline::never();
}

void Connection::call(const std::function<void(ncclComm_t)>& function) {
  const DeviceGuard guard(device_);
  const std::unique_lock lock(call_mutex_);
  fault_.check();
  function(comm_);
}

bool Connection::is_complete(const Flight& flight) const noexcept {
  if (flight.is_done || fault_.is_set()) return true;
  try {
    return flight.end.is_complete();
  } catch (const Error&) {
    return true;  // wait() says what it was
  }
}

void Connection::wait(Flight& flight, Deadline deadline) {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  while (!flight.is_done) {
    const bool has_ended = flight.end.is_complete();
    // An abort ends kernels, too, but the fault is set before it.
    fault_.check();
    if (has_ended) {
      flight.is_done = true;
      return;
    }
    DDP_EXPECT(!deadline.has_passed(), Timeout, self(), ": ",
               describe(flight.operation), " is still in flight after ",
               deadline.seconds_given(),
               " s; wait on, or abort the communicator");
    if (Clock::now() - began < std::chrono::microseconds(100)) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

void Connection::fail(ErrorKind kind, const std::string& reason) noexcept {
  fault_.set(kind, reason);
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Connection::withdraw_memory(const Handle& handle) noexcept {
  const std::unique_lock lock(call_mutex_);
  if (!fault_.is_set() && runtime_is_alive()) withdraw(comm_, handle);
}

void Connection::watch() {
  std::optional<DeviceGuard> guard;
  try {
    guard.emplace(device_);
  } catch (const std::exception& error) {
    fault_.set(kind_of(error), concat(self(), ": ", error.what()));
  }
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait_for(lock, kWatchPeriod,
                      [&] { return is_closing_ || fault_.is_set(); });
    if (!fault_.is_set()) {
      try {
        look_at_flights();
        look_at_errors();
      } catch (const std::exception& error) {
        fault_.set(kind_of(error), concat(self(), ": ", error.what()));
      }
    }
    if (fault_.is_set()) break;
    if (!is_closing_) continue;
    if (flights_.empty()) {
      changed_.notify_all();
      return;
    }
    changed_.wait_for(lock, std::chrono::milliseconds(1));
  }
  flights_.clear();
  changed_.notify_all();
  lock.unlock();
  abort_now();
}

// REQUIRES: mutex_ is held.
void Connection::look_at_flights() {
  land_completed();
  if (launching_ && launching_deadline_.has_passed())
    return time_out(*launching_, launching_deadline_);
  if (flights_.empty()) {
    oldest_ = nullptr;
    return;
  }
  // Operations run one after another, so the time of each begins when it has
  // become the oldest.
  if (oldest_ != flights_.front().get()) {
    oldest_ = flights_.front().get();
    oldest_deadline_ = Deadline::in(timeout_);
    return;
  }
  if (oldest_deadline_.has_passed())
    time_out(oldest_->operation, oldest_deadline_);
}

void Connection::time_out(const Operation& operation, Deadline deadline) {
  fault_.set(ErrorKind::kTimeout,
             concat(self(), ": ", describe(operation), " waited ",
                    deadline.seconds_given(),
                    " s for the other ranks; see what they do and whether all "
                    "ranks issue the same operations, or raise "
                    "collective_timeout"));
}

void Connection::look_at_errors() {
  ncclResult_t result = ncclSuccess;
  const std::unique_lock call(call_mutex_, std::try_to_lock);
  if (!call.owns_lock()) return;  // the next time
  if (ncclCommGetAsyncError(comm_, &result) != ncclSuccess ||
      result == ncclSuccess || result == ncclInProgress) {
    return;
  }
  const std::string what = flights_.empty()
                               ? "no operation in flight"
                               : describe(flights_.front()->operation);
  fault_.set(
      result == ncclRemoteError ? ErrorKind::kPeerFailure
                                : ErrorKind::kDeviceError,
      concat(self(), ": ", what, ": NCCL failed: ", error_text(result, comm_)));
}

// REQUIRES: mutex_ is held.
void Connection::land_completed() {
  // An event that has passed on a stream means that those before it have.
  const std::size_t middle = flights_.size() / 2;
  std::size_t landed = 0;
  if (middle > 0 && flights_[middle]->end.is_complete()) landed = middle + 1;
  while (landed < flights_.size() && flights_[landed]->end.is_complete())
    ++landed;
  if (fault_.is_set()) return;  // an abort may have ended them
  for (; landed > 0; --landed) {
    const std::shared_ptr<Flight> flight = std::move(flights_.front());
    flights_.pop_front();
    flight->is_done = true;
    // Nobody else can reach its event: use it again.
    if (flight.use_count() == 1)
      spare_events_.push_back(std::move(flight->end));
  }
}

Event Connection::take_event() {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_events_.empty()) {
      Event event = std::move(spare_events_.back());
      spare_events_.pop_back();
      return event;
    }
  }
  return Event(device_);
}

void Connection::abort_now() noexcept {
  std::unique_lock call(call_mutex_, std::defer_lock);
  (void)call.try_lock_for(kCallGrace);
  if (is_aborted_ || !runtime_is_alive()) return;
  is_aborted_ = true;
  try {
    const DeviceGuard guard(device_);
    (void)ncclCommAbort(comm_);
  } catch (const Error&) {  // the device has failed: its kernels have ended
  }
}

}  // namespace ddp::nccl
