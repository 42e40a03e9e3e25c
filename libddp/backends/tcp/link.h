/// \file
/// Link: the connection to one other rank, as two queues of messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace ddp::tcp {

/// What goes ahead of the bytes of a message, in the order of the machine
/// (tensors travel in it too).
struct MessageHeader {
  std::uint32_t magic = 0x31504444;  // "DDP1"
  std::uint32_t tag = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(MessageHeader) == 16);

/// One message, sent or due. Its owner keeps it where it is until it is done
/// or the link has been broken.
struct Message {
  MessageHeader header;
  char* data = nullptr;
  int peer = 0;
  bool is_receive = false;
  bool is_done = false;
};

/// Owns a connected stream socket. Neither call below blocks; both move bytes
/// between the socket and the memory of messages without a copy in between.
class Link {
 public:
  Link() = default;
  /// Takes over `descriptor`, which is known to the fork guard.
  explicit Link(int descriptor) : descriptor_(descriptor) {}
  ~Link();
  Link(Link&& other) noexcept;
  Link& operator=(Link&& other) noexcept;

  int descriptor() const noexcept { return descriptor_; }
  void send(Message& message) { outgoing_.push_back(&message); }
  void receive(Message& message) { incoming_.push_back(&message); }
  bool wants_to_send() const noexcept {
    return !is_broken_ && !outgoing_.empty();
  }
  bool wants_to_receive() const noexcept {
    return !is_broken_ && !is_mismatched_ && !incoming_.empty();
  }

  /// Moves what it can; returns whether anything moved. An end of the
  /// connection, or an error of it, breaks the link.
  bool write_some();
  /// The same. Stops at a message that is not the one that is due.
  bool read_some();

  /// The connection has ended while messages were due; why.
  bool is_broken() const noexcept { return is_broken_; }
  const std::string& why() const noexcept { return why_; }
  /// The message that is due is another one than the one that has come.
  bool is_mismatched() const noexcept { return is_mismatched_; }
  const MessageHeader& arrived() const noexcept { return arrived_; }
  /// REQUIRES: a message is due.
  const Message& due() const { return *incoming_.front(); }

  /// Forgets all messages; nothing can be sent or received any more.
  void give_up(const std::string& why);

 private:
  void drop_sent(std::size_t bytes);
  void take_received(std::size_t bytes);
  void look_at_header();
  void close() noexcept;

  int descriptor_ = -1;
  std::deque<Message*> outgoing_;
  std::deque<Message*> incoming_;
  std::size_t sent_ = 0;  ///< of the first outgoing message, with its header
  MessageHeader arrived_;
  std::size_t header_bytes_ = 0;   ///< of arrived_ that have come
  std::size_t payload_bytes_ = 0;  ///< of the message that is due
  bool is_mismatched_ = false;
  bool is_broken_ = false;
  std::string why_;
};

}  // namespace ddp::tcp
