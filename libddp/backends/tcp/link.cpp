#include "libddp/backends/tcp/link.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "kernels/core/error.h"
#include "libddp/bootstrap/fork_guard.h"

namespace ddp::tcp {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(MessageHeader);
// Messages that go to the system in one call.
constexpr std::size_t kMessagesAtOnce = 8;

bool is_only_busy(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

std::string text_of(int error) {
  return concat(std::generic_category().message(error), " (errno ", error, ")");
}

// The parts of a message from byte `done` on, header first.
std::size_t add_parts(iovec* parts, Message& message, std::size_t done) {
  std::size_t count = 0;
  auto* header = reinterpret_cast<char*>(&message.header);
  if (done < kHeaderBytes)
    parts[count++] = {header + done, kHeaderBytes - done};
  const std::size_t skip = done - std::min(done, kHeaderBytes);
  if (skip < message.header.bytes)
    parts[count++] = {message.data + skip, message.header.bytes - skip};
  return count;
}

}  // namespace

Link::~Link() { close(); }

Link::Link(Link&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

Link& Link::operator=(Link&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = std::exchange(other.descriptor_, -1);
  return *this;
}

void Link::close() noexcept {
  if (descriptor_ < 0) return;
  keep_in_forked_child(descriptor_);
  (void)::close(std::exchange(descriptor_, -1));
}

bool Link::write_some() {
  if (!wants_to_send()) return false;
  std::array<iovec, 2 * kMessagesAtOnce> parts;
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(outgoing_.size(), kMessagesAtOnce); ++i)
    count += add_parts(&parts[count], *outgoing_[i], i == 0 ? sent_ : 0);
  msghdr call{};
  call.msg_iov = parts.data();
  call.msg_iovlen = count;
  const ssize_t sent =
      ::sendmsg(descriptor_, &call, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) {
    if (!is_only_busy(errno)) give_up(text_of(errno));
    return false;
  }
  drop_sent(static_cast<std::size_t>(sent));
  return sent > 0;
}

void Link::drop_sent(std::size_t bytes) {
  sent_ += bytes;
  while (!outgoing_.empty()) {
    const std::size_t whole = kHeaderBytes + outgoing_.front()->header.bytes;
    if (sent_ < whole) return;
    sent_ -= whole;
    outgoing_.front()->is_done = true;
    outgoing_.pop_front();
  }
}

bool Link::read_some() {
  if (!wants_to_receive()) return false;
  // A header may have come with the message before.
  if (header_bytes_ == kHeaderBytes) look_at_header();
  if (!wants_to_receive()) return true;
  // The rest of this message, and the header of the one behind it.
  MessageHeader next;
  std::array<iovec, 2> parts;
  std::size_t count = 0;
  const bool is_in_header = header_bytes_ < kHeaderBytes;
  if (is_in_header) {
    auto* header = reinterpret_cast<char*>(&arrived_);
    parts[count++] = {header + header_bytes_, kHeaderBytes - header_bytes_};
  } else {
    parts[count++] = {due().data + payload_bytes_,
                      arrived_.bytes - payload_bytes_};
    parts[count++] = {&next, kHeaderBytes};
  }
  const std::size_t payload_left =
      is_in_header ? 0 : arrived_.bytes - payload_bytes_;
  msghdr call{};
  call.msg_iov = parts.data();
  call.msg_iovlen = count;
  const ssize_t got = ::recvmsg(descriptor_, &call, MSG_DONTWAIT);
  if (got < 0) {
    if (!is_only_busy(errno)) give_up(text_of(errno));
    return false;
  }
  if (got == 0) {
    give_up("it closed the connection");
    return false;
  }
  const auto bytes = static_cast<std::size_t>(got);
  if (is_in_header) {
    header_bytes_ += bytes;
    if (header_bytes_ == kHeaderBytes) look_at_header();
  } else {
    take_received(std::min(bytes, payload_left));
    if (bytes > payload_left) {
      arrived_ = next;
      header_bytes_ = bytes - payload_left;
    }
  }
  return true;
}

// REQUIRES: a message is due and its header is complete.
void Link::look_at_header() {
  if (payload_bytes_ != 0) return;  // it was looked at before
  const MessageHeader& expected = due().header;
  is_mismatched_ = arrived_.magic != expected.magic ||
                   arrived_.tag != expected.tag ||
                   arrived_.bytes != expected.bytes;
  if (!is_mismatched_ && arrived_.bytes == 0) take_received(0);
}

void Link::take_received(std::size_t bytes) {
  payload_bytes_ += bytes;
  if (payload_bytes_ < arrived_.bytes) return;
  incoming_.front()->is_done = true;
  incoming_.pop_front();
  header_bytes_ = 0;
  payload_bytes_ = 0;
}

void Link::give_up(const std::string& why) {
  if (is_broken_) return;
  is_broken_ = true;
  why_ = why;
  outgoing_.clear();
  incoming_.clear();
}

}  // namespace ddp::tcp
