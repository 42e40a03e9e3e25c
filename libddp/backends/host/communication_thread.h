/// \file
/// CommunicationThread: runs the operations of one communicator, one after
/// another, on a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "libddp/backends/host/transfers.h"
#include "libddp/comm/work.h"

namespace ddp::host {

/// Messages do not move unless somebody asks the transport to: this thread
/// does, while the caller computes. issue() is for one thread at a
/// time, abort() for any.
///
/// The first operation that fails ends the thread: it and all that wait
/// behind it fail with what happened, and so does every later issue().
class CommunicationThread {
 public:
  using Task = std::function<void(const Bounds&)>;

  /// `timeout` bounds each operation from the moment that it begins.
  CommunicationThread(Group group, std::unique_ptr<Transport> transport,
                      Milliseconds timeout);
  /// Operations in flight get a few seconds to end, since other ranks may
  /// need this one's part; none during stack unwinding. Then they are given
  /// up. A transport that has failed is abandoned. Not for a forked child.
  ~CommunicationThread();
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  const Group& group() const noexcept { return group_; }
  Work issue(std::string what, Task task);
  void abort(ErrorKind kind, const std::string& reason) noexcept;
  /// Throws what has failed.
  void check() const { fault_.check(); }

 private:
  class State;
  struct Job {
    std::string what;
    Task task;
    std::shared_ptr<State> state;
  };

  void run();
  bool next(Job& job);
  bool run_one(Job& job);
  void stop();

  const Group group_;
  std::unique_ptr<Transport> transport_;
  const Milliseconds timeout_;
  Fault fault_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::atomic<std::size_t> unfinished_ = 0;  // queued and running
  std::atomic<std::size_t> queued_ = 0;
  bool is_asleep_ = false;
  bool is_closing_ = false;
  bool is_stopped_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace ddp::host
