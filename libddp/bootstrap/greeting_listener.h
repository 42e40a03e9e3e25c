/// \file
/// GreetingListener: who connects to a port and says who he is. Private:
/// includes Asio.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "libddp/bootstrap/socket.h"
#include "libddp/bootstrap/wire_format.h"

namespace ddp {

/// Accepts connections and reads their greetings. Strangers, and those who
/// stay silent, are hung up on without a word. All members, and the handler,
/// run on the thread of the io_context.
class GreetingListener : public std::enable_shared_from_this<GreetingListener> {
 public:
  /// Gets the connection, the version that the greeting claims, and its
  /// payload.
  using Handler = std::function<void(Tcp::socket socket, std::uint32_t version,
                                     const std::string& payload)>;

  GreetingListener(asio::io_context& io, Tcp::acceptor acceptor,
                   Milliseconds greeting_limit);
  ~GreetingListener() { close(); }

  void start(Handler handler);
  /// No more connections; the handler is let go.
  void close() noexcept;

 private:
  struct Newcomer;
  void accept_next();
  void read_header(const std::shared_ptr<Newcomer>& newcomer);
  void read_payload(const std::shared_ptr<Newcomer>& newcomer);

  asio::io_context& io_;
  Tcp::acceptor acceptor_;
  Milliseconds greeting_limit_;
  Handler handler_;
};

}  // namespace ddp
