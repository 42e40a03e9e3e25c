/// \file
/// TCP sockets by Asio that no exec'ed or forked child keeps open. Private to
/// bootstrap's sources, since it includes Asio.
#pragma once

#include <optional>
#include <string>

#include "libddp/base/deadline.h"
#include "libddp/bootstrap/asio.h"

namespace ddp {

using Tcp = asio::ip::tcp;

/// An open, unconnected socket.
Tcp::socket open_socket(asio::io_context& io, const Tcp& protocol);

/// A listening socket on every address of this machine, or the error. A port
/// of a server that ended a moment ago can be had; one that is listened on
/// cannot.
struct Listener {
  std::optional<Tcp::acceptor> acceptor;
  asio::error_code error;
};
Listener listen_on(asio::io_context& io, std::uint16_t port);

/// Takes one waiting connection, or nothing.
std::optional<Tcp::socket> accept_from(asio::io_context& io,
                                       Tcp::acceptor& acceptor);

/// No delay, and an end is noticed within a minute when the other machine is
/// gone without a word.
void set_control_options(Tcp::socket& socket);

/// Closes, and forgets the descriptor in the list of those that a forked
/// child closes.
void close_socket(Tcp::socket& socket) noexcept;
void close_acceptor(Tcp::acceptor& acceptor) noexcept;

/// "Connection refused (errno 111)".
std::string describe(const asio::error_code& error);

}  // namespace ddp
