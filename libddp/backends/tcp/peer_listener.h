/// \file
/// PeerListener: takes in the ranks that connect to this one. Private:
/// includes Asio.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libddp/bootstrap/greeting_listener.h"

namespace ddp::tcp {

/// Listens from the constructor on; answers on a thread from serve() on.
/// Members may be called from one thread.
class PeerListener {
 public:
  /// `ports` are tried in order; empty: any. Throws ConnectionLost.
  explicit PeerListener(const std::vector<std::uint16_t>& ports);
  ~PeerListener();

  std::uint16_t port() const noexcept { return port_; }

  /// Welcomes the ranks in (rank, size) who know `token`.
  void serve(const std::string& token, int rank, int size);
  /// Waits until all of them have come, at most until `deadline`; returns who
  /// is missing.
  std::vector<int> wait(Deadline deadline);
  /// The connections of those who have come, by rank; the listening ends.
  std::map<int, Tcp::socket> take();

 private:
  void answer(Tcp::socket socket, std::uint32_t version,
              const std::string& payload);
  Answer judge(std::uint32_t version, const Greeting& greeting) const;
  void stop();

  asio::io_context io_{1};
  std::shared_ptr<GreetingListener> listener_;
  std::uint16_t port_ = 0;
  std::string token_;
  int rank_ = 0;
  int size_ = 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Tcp::socket> arrived_;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace ddp::tcp
