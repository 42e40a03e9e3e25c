#include "libddp/bootstrap/socket.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "kernels/core/error.h"
#include "libddp/bootstrap/fork_guard.h"

namespace ddp {
namespace {

template <typename Socket>
void close_any(Socket& socket) noexcept {
  if (!socket.is_open()) return;
  keep_in_forked_child(socket.native_handle());
  asio::error_code ignored;
  socket.close(ignored);
}

int open_descriptor(const Tcp& protocol) {
  // CLOEXEC from the start: a child exec'ed in between would keep the
  // connection open after this process ended, and hide its end.
  const int descriptor =
      ::socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0)
    throw asio::system_error(
        asio::error_code(errno, asio::error::get_system_category()));
  close_in_forked_child(descriptor);
  return descriptor;
}

asio::error_code try_listen(Tcp::acceptor& acceptor, const Tcp& protocol,
                            std::uint16_t port) {
  asio::error_code error;
  acceptor.assign(protocol, open_descriptor(protocol), error);
  if (error) return error;
  // Only past connections of the port (TIME_WAIT) are overlooked, not a
  // server that listens.
  acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error && protocol == Tcp::v6())
    acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(Tcp::endpoint(protocol, port), error);
  if (!error) acceptor.listen(Tcp::acceptor::max_listen_connections, error);
  if (!error) acceptor.non_blocking(true, error);
  return error;
}

}  // namespace

Tcp::socket open_socket(asio::io_context& io, const Tcp& protocol) {
  return Tcp::socket(io, protocol, open_descriptor(protocol));
}

Listener listen_on(asio::io_context& io, std::uint16_t port) {
  Listener result;
  // IPv6 with IPv4 mapped into it, or IPv4 alone where there is no IPv6.
  for (const Tcp& protocol : {Tcp::v6(), Tcp::v4()}) {
    Tcp::acceptor acceptor(io);
    try {
      result.error = try_listen(acceptor, protocol, port);
    } catch (const asio::system_error& error) {
      result.error = error.code();
    }
    if (!result.error) {
      result.acceptor = std::move(acceptor);
      return result;
    }
    close_acceptor(acceptor);
    if (result.error == asio::error::address_in_use) return result;
  }
  return result;
}

std::optional<Tcp::socket> accept_from(asio::io_context& io,
                                       Tcp::acceptor& acceptor) {
  const int descriptor = ::accept4(acceptor.native_handle(), nullptr, nullptr,
                                   SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  close_in_forked_child(descriptor);
  return Tcp::socket(io, acceptor.local_endpoint().protocol(), descriptor);
}

void set_control_options(Tcp::socket& socket) {
  const auto set = [&](int level, int option, int value) {
    // Options tune; a system without one still works.
    static_cast<void>(::setsockopt(socket.native_handle(), level, option,
                                   &value, sizeof(value)));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

void close_socket(Tcp::socket& socket) noexcept { close_any(socket); }
void close_acceptor(Tcp::acceptor& acceptor) noexcept { close_any(acceptor); }

std::string describe(const asio::error_code& error) {
  // Asio's own, such as the end of the stream, are no errno values.
  return error.category() == asio::error::get_system_category()
             ? concat(error.message(), " (errno ", error.value(), ")")
             : error.message();
}

}  // namespace ddp
