#include "libddp/bootstrap/framed_connection.h"

#include <exception>
#include <utility>

#include "kernels/core/error.h"

namespace ddp {

FramedConnection::FramedConnection(Tcp::socket socket,
                                   std::size_t max_payload_bytes)
    : socket_(std::move(socket)), max_payload_bytes_(max_payload_bytes) {}

FramedConnection::~FramedConnection() { close(); }

void FramedConnection::start(FrameHandler on_frame, EndHandler on_end) {
  on_frame_ = std::move(on_frame);
  on_end_ = std::move(on_end);
  read_header();
}

void FramedConnection::send(FrameType type, std::string_view payload) {
  send_bytes(encode_frame(type, payload));
}

void FramedConnection::send_bytes(std::string bytes) {
  if (!is_open()) return;
  outgoing_.push_back(std::move(bytes));
  if (outgoing_.size() == 1) write_next();
}

void FramedConnection::write_next() {
  asio::async_write(
      socket_, asio::buffer(outgoing_.front()),
      [self = shared_from_this()](const asio::error_code& error, std::size_t) {
        if (!self->is_open()) return;
        if (error) return self->end(describe(error));
        self->outgoing_.pop_front();
        if (!self->outgoing_.empty()) self->write_next();
      });
}

void FramedConnection::read_header() {
  asio::async_read(
      socket_, asio::buffer(header_),
      [self = shared_from_this()](const asio::error_code& error, std::size_t) {
        if (!self->is_open()) return;
        if (error) return self->end(describe(error));
        self->read_payload(
            decode_frame_header({self->header_.data(), self->header_.size()}));
      });
}

void FramedConnection::read_payload(Header header) {
  if (header.payload_bytes > max_payload_bytes_) {
    return end(concat("a message of ", header.payload_bytes,
                      " bytes where at most ", max_payload_bytes_,
                      " are allowed"));
  }
  payload_.resize(header.payload_bytes);
  asio::async_read(socket_, asio::buffer(payload_),
                   [self = shared_from_this(), header](
                       const asio::error_code& error, std::size_t) {
                     if (!self->is_open()) return;
                     if (error) return self->end(describe(error));
                     try {
                       self->on_frame_(static_cast<FrameType>(header.kind),
                                       std::move(self->payload_));
                     } catch (const std::exception& bad_frame) {
                       return self->end(bad_frame.what());
                     }
                     if (self->is_open()) self->read_header();
                   });
}

void FramedConnection::end(const std::string& reason) {
  if (!is_open()) return;
  close();
  // The handler may hold this connection: let it go with the call.
  const auto on_end = std::exchange(on_end_, nullptr);
  if (on_end) on_end(reason);
}

void FramedConnection::close() noexcept {
  close_socket(socket_);
  outgoing_.clear();
}

}  // namespace ddp
