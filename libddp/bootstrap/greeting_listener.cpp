#include "libddp/bootstrap/greeting_listener.h"

#include <asio/read.hpp>
#include <asio/steady_timer.hpp>
#include <utility>

#include "kernels/core/error.h"

namespace ddp {

/// A connection that has not yet said who it is.
struct GreetingListener::Newcomer {
  Newcomer(asio::io_context& io, Tcp::socket accepted)
      : socket(std::move(accepted)), timer(io) {}
  ~Newcomer() { close_socket(socket); }
  Tcp::socket socket;
  asio::steady_timer timer;
  Header header;
  std::string bytes;
};

GreetingListener::GreetingListener(asio::io_context& io, Tcp::acceptor acceptor,
                                   Milliseconds greeting_limit)
    : io_(io),
      acceptor_(std::move(acceptor)),
      greeting_limit_(greeting_limit) {}

void GreetingListener::start(Handler handler) {
  handler_ = std::move(handler);
  accept_next();
}

void GreetingListener::close() noexcept {
  close_acceptor(acceptor_);
  handler_ = nullptr;
}

void GreetingListener::accept_next() {
  acceptor_.async_wait(
      Tcp::acceptor::wait_read,
      [self = shared_from_this()](const asio::error_code& error) {
        if (error || !self->acceptor_.is_open()) return;
        while (auto socket = accept_from(self->io_, self->acceptor_)) {
          self->read_header(
              std::make_shared<Newcomer>(self->io_, std::move(*socket)));
        }
        self->accept_next();
      });
}

void GreetingListener::read_header(const std::shared_ptr<Newcomer>& newcomer) {
  // Whoever connects and stays silent is hung up on.
  newcomer->timer.expires_after(greeting_limit_);
  newcomer->timer.async_wait(
      [weak = std::weak_ptr(newcomer)](const asio::error_code& error) {
        const auto late = weak.lock();
        if (!error && late) close_socket(late->socket);
      });
  newcomer->bytes.resize(kGreetingHeaderBytes);
  asio::async_read(newcomer->socket, asio::buffer(newcomer->bytes),
                   [self = shared_from_this(), newcomer](
                       const asio::error_code& error, std::size_t) {
                     if (error) return;
                     try {
                       newcomer->header =
                           decode_greeting_header(newcomer->bytes);
                     } catch (const CorruptData&) {
                       return;  // a stranger's: no answer
                     }
                     self->read_payload(newcomer);
                   });
}

void GreetingListener::read_payload(const std::shared_ptr<Newcomer>& newcomer) {
  if (newcomer->header.payload_bytes > kMaxGreetingBytes) return;
  newcomer->bytes.resize(newcomer->header.payload_bytes);
  asio::async_read(newcomer->socket, asio::buffer(newcomer->bytes),
                   [self = shared_from_this(), newcomer](
                       const asio::error_code& error, std::size_t) {
                     if (error || !self->handler_) return;
                     newcomer->timer.cancel();
                     // The handler may close this listener, and itself with it.
                     const Handler handler = self->handler_;
                     handler(std::move(newcomer->socket), newcomer->header.kind,
                             newcomer->bytes);
                   });
}

}  // namespace ddp
