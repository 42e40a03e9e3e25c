/// \file
/// FramedConnection: a TCP connection that carries frames of wire_format.h.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "libddp/bootstrap/socket.h"
#include "libddp/bootstrap/wire_format.h"

namespace ddp {

/// Reads and writes frames on an io_context. All members, and the handlers,
/// run on the thread that runs the context.
class FramedConnection : public std::enable_shared_from_this<FramedConnection> {
 public:
  using FrameHandler = std::function<void(FrameType, std::string payload)>;
  /// Called once when the other side, or an error, ends the connection; not
  /// after close().
  using EndHandler = std::function<void(const std::string& reason)>;

  FramedConnection(Tcp::socket socket, std::size_t max_payload_bytes);
  ~FramedConnection();

  void start(FrameHandler on_frame, EndHandler on_end);
  void send(FrameType type, std::string_view payload);
  /// Bytes of greetings, which are no frames.
  void send_bytes(std::string bytes);
  /// Whether all that was sent is with the system.
  bool is_flushed() const { return outgoing_.empty(); }
  bool is_open() const { return socket_.is_open(); }
  void close() noexcept;

 private:
  void read_header();
  void read_payload(Header header);
  void write_next();
  void end(const std::string& reason);

  Tcp::socket socket_;
  std::size_t max_payload_bytes_;
  FrameHandler on_frame_;
  EndHandler on_end_;
  std::array<char, kFrameHeaderBytes> header_{};
  std::string payload_;
  std::deque<std::string> outgoing_;
};

}  // namespace ddp
