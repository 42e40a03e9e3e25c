/// \file
/// Connection: one communicator of NCCL, its stream, and the watchdog that
/// keeps a hang from being silent.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libddp/backends/nccl/flight.h"
#include "libddp/backends/nccl/memory.h"
#include "libddp/backends/nccl/nccl_call.h"
#include "libddp/backends/nccl/settings.h"
#include "libddp/comm/fault.h"
#include "libddp/device/stream.h"

namespace ddp::nccl {

/// Shared by the Communicator, the Works it gave out and the Buffers that are
/// registered with it; the last to go destroys it. run() is for one thread at
/// a time, everything else for any.
class Connection {
 public:
  /// Takes over `comm`; `names` are the ranks' descriptions.
  Connection(ncclComm_t comm, Device device, int rank,
             std::vector<std::string> names, Settings settings,
             Milliseconds timeout);
  /// Operations in flight get a few seconds to end (none during stack
  /// unwinding); then the communicator is aborted. Never hangs.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(names_.size()); }
  Device device() const noexcept { return device_; }
  const Settings& settings() const noexcept { return settings_; }
  Milliseconds timeout() const noexcept { return timeout_; }
  const std::vector<std::string>& names() const noexcept { return names_; }
  const std::string& self() const { return names_[rank_]; }
  const Fault& fault() const noexcept { return fault_; }

  using Launch = std::function<void(ncclComm_t, cudaStream_t)>;
  /// Launches after what `producer` holds. Throws what has failed.
  std::shared_ptr<Flight> run(const Operation& operation, StreamView producer,
                              const Launch& launch);
  /// A call that launches nothing, such as a split. Not beside abort().
  void call(const std::function<void(ncclComm_t)>& function);
  /// Waits until the operation has ended well; throws what has failed, or
  /// Timeout at `deadline`.
  void wait(Flight& flight, Deadline deadline);
  bool is_complete(const Flight& flight) const noexcept;

  /// Makes all operations fail; the watchdog then aborts NCCL, after which
  /// kernels that spin for a peer end.
  void fail(ErrorKind kind, const std::string& reason) noexcept;

  /// Ends a registration, if there still is somebody to end it with.
  void withdraw_memory(const Handle& handle) noexcept;

 private:
  void watch();
  void look_at_flights();
  void set_launching(const Operation* operation);
  void time_out(const Operation& operation, Deadline deadline);
  void look_at_errors();
  void land_completed();
  void abort_now() noexcept;
  Event take_event();

  ncclComm_t comm_;
  const Device device_;
  const int rank_;
  const std::vector<std::string> names_;
  const Settings settings_;
  const Milliseconds timeout_;
  Fault fault_;
  Stream stream_;
  Event ready_;
  // Held by whoever calls NCCL with comm_. Timed, because a call can be stuck
  // in NCCL until it is aborted.
  std::timed_mutex call_mutex_;
  bool is_aborted_ = false;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Flight>> flights_;  // in stream order
  // The operation that run() is handing to NCCL, which connects to peers at
  // the first of a kind and so can wait for them, too.
  const Operation* launching_ = nullptr;
  Deadline launching_deadline_ = Deadline::never();
  const Flight* oldest_ = nullptr;
  Deadline oldest_deadline_ = Deadline::never();
  std::vector<Event> spare_events_;
  bool is_closing_ = false;
  std::thread watchdog_;  // last: it uses all the others
};

}  // namespace ddp::nccl
