/// \file
/// HubServer: what the hub's one thread does. Private: includes Asio.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libddp/bootstrap/control_plane.h"
#include "libddp/bootstrap/exchange_table.h"
#include "libddp/bootstrap/framed_connection.h"
#include "libddp/bootstrap/greeting_listener.h"
#include "libddp/bootstrap/hub.h"

namespace ddp {

/// All members run on the thread of the io_context unless said otherwise.
class HubServer : public std::enable_shared_from_this<HubServer> {
 public:
  HubServer(asio::io_context& io, Tcp::acceptor acceptor,
            const HubOptions& options);

  void start();
  /// Says goodbye and stops the context when all is delivered.
  void shut_down();
  /// Any thread.
  std::uint16_t port() const noexcept { return port_; }
  /// Any thread.
  void wait_for_greetings(Deadline deadline);

 private:
  using Connection = std::shared_ptr<FramedConnection>;
  struct Member {
    enum class State { kAbsent, kJoined, kLeft, kFailed };
    State state = State::kAbsent;
    bool is_confirmed = false;  ///< it knows that it has been welcomed
    Identity identity;
    Connection connection;
  };
  /// A request that came over a connection.
  struct Request {
    Connection connection;
    int rank = -1;
    std::int64_t id = 0;
  };

  // Greetings: hub_greeting.cpp.
  void answer(Tcp::socket socket, std::uint32_t version,
              std::string_view payload);
  Answer judge(std::uint32_t version, const Greeting& greeting);
  std::optional<std::string> find_disagreement(const Greeting& greeting,
                                               const Identity& identity) const;
  Answer refuse(const std::string& why);
  void admit(const Connection& connection, const Greeting& greeting);
  void dismiss(const Connection& connection);
  void count_greeting();

  // Requests: hub_server.cpp.
  void handle(const Connection& connection, int rank, FrameType type,
              std::string_view payload);
  void handle_store(const Request& request, FrameType type,
                    class WireReader& in);
  void set(const std::string& key, std::string value);
  void exchange(const Request& request, class WireReader& in);
  void announce(int rank, ErrorKind kind, const std::string& text);
  void leave(int rank);
  void forget(const Connection& connection);
  void connection_ended(const Connection& connection, int rank,
                        const std::string& reason);

  void reply(const Request& request, std::string_view text);
  void reply_error(const Connection& connection, std::int64_t id,
                   ErrorKind kind, std::string_view text);
  void broadcast(FrameType type, std::string_view payload, int except = -1);
  void fail_rounds_lacking(int rank);
  void stop_when_flushed(Deadline deadline);
  bool is_complete() const;
  Member& member(int rank) { return members_.at(static_cast<size_t>(rank)); }

  asio::io_context& io_;
  std::uint16_t port_;
  std::shared_ptr<GreetingListener> listener_;
  HubOptions options_;
  asio::steady_timer flush_timer_;

  std::vector<Member> members_;
  std::set<Connection> connections_;
  std::optional<std::string> refusal_;
  /// Payload of the kPeerFailed that those who join later are sent.
  std::string first_failure_;
  ExchangeTable exchanges_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Request>> waiting_gets_;

  std::mutex greetings_mutex_;
  std::condition_variable greeted_;
  int greetings_ = 0;
};

}  // namespace ddp
