/// \file
/// What ranks say to the hub on rank 0, byte for byte.
///
/// Numbers are little-endian. A *number* in a payload takes 8 bytes (two's
/// complement); a *text* is a number that counts its bytes, and the bytes.
///
/// **Greeting.** Who connects speaks first:
///
///     | magic "LIBDDP\r\n" (8) | version u32 | payload bytes u32 | payload |
///
/// with the payload: text job token, number rank (-1: store only), number
/// world size, text identity (identity.h), number probe (1: answer, then
/// forget me). A payload longer than kMaxGreetingBytes, or another magic, is
/// a stranger's and gets no answer. All else gets one, in the same frame, whose
/// payload is: number verdict (Verdict), text explanation, text identity of
/// rank 0. After any verdict but kWelcome the hub closes.
///
/// **Frames.** Then both sides send frames until one closes:
///
///     | type u32 | payload bytes u32 | payload |
///
/// Requests carry a number that the reply repeats, so that many can be open at
/// once; replies come in any order. A longer payload than the receiver allows
/// ends the connection. The payloads stand beside FrameType. A rank's first
/// frame is kHere: one whose connection ends before it gave up waiting for the
/// welcome and comes again, so that is no failure.
///
/// Any change of this file that both sides must know raises kProtocolVersion.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddp {

inline constexpr std::string_view kMagic = "LIBDDP\r\n";
inline constexpr std::uint32_t kProtocolVersion = 1;
/// Of magic, version and payload size.
inline constexpr std::size_t kGreetingHeaderBytes = 16;
inline constexpr std::size_t kFrameHeaderBytes = 8;
inline constexpr std::size_t kMaxGreetingBytes = std::size_t{1} << 16;
/// Bound of a key with its value, or of one message in an exchange.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;
/// What the hub accepts, and what it may send: the messages of all ranks.
inline constexpr std::size_t kMaxRequestBytes = kMaxMessageBytes + (1 << 16);
inline constexpr std::size_t kMaxReplyBytes = std::size_t{1} << 30;

enum class Verdict : std::int64_t {
  kWelcome = 0,
  kWrongVersion = 1,
  kWrongToken = 2,
  /// This rank cannot be part of this world; the explanation says why.
  kRefused = 3,
  /// The rank has left this world: its next world is not yet listening.
  kComeBack = 4,
};

enum class FrameType : std::uint32_t {
  kReply = 1,     ///< number request, number error kind (-1: none), text
  kSet = 2,       ///< number request, text key, text value
  kGet = 3,       ///< number request, text key; replied when the key exists
  kFind = 4,      ///< number request, text key; reply: "1" value, or "0"
  kAdd = 5,       ///< number request, text key, number amount; reply: decimal
  kCancel = 6,    ///< number request that no longer waits; no reply
  kExchange = 7,  ///< number request, text topic, number turn, text message;
                  ///< reply: number of messages, each message as a text
  kMissing = 8,   ///< as kExchange with no message; reply: list for people
  kAnnounce = 9,  ///< number request, number error kind, text
  kLeave = 10,    ///< number request
  kHere = 11,     ///< nothing: the welcome has arrived; no reply
  /// From here on the hub speaks unasked.
  kPeerFailed = 20,    ///< number rank, number error kind, text
  kWorldRefused = 21,  ///< number error kind, text: the world cannot come up
  kHubLeaves = 22,     ///< text: exchanges still open; rank 0 is done
};

/// Puts numbers and texts behind each other.
class WireWriter {
 public:
  void number(std::int64_t value);
  void text(std::string_view value);
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Takes them off again. All members throw CorruptData when the bytes end too
/// soon or a value does not fit.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}
  std::int64_t number();
  /// A number that fits an int.
  int small_number();
  std::string text();

 private:
  std::string_view bytes_;
};

struct Greeting {
  std::string token;
  int rank = -1;
  int world_size = 0;
  std::string identity;
  bool is_probe = false;
};

struct Answer {
  Verdict verdict = Verdict::kWelcome;
  std::string explanation;
  std::string identity;
};

/// With header.
std::string encode(const Greeting& greeting,
                   std::uint32_t version = kProtocolVersion);
std::string encode(const Answer& answer);
/// Payload alone; they throw CorruptData.
Greeting decode_greeting(std::string_view payload);
Answer decode_answer(std::string_view payload);

/// A frame with header. REQUIRES: the payload is below 2^32 bytes.
std::string encode_frame(FrameType type, std::string_view payload);

struct Header {
  std::uint32_t kind = 0;  ///< version of a greeting, type of a frame
  std::uint32_t payload_bytes = 0;
};
/// Throws CorruptData unless it starts with the magic. REQUIRES: as many
/// bytes as the name's header has.
Header decode_greeting_header(std::string_view bytes);
Header decode_frame_header(std::string_view bytes);

}  // namespace ddp
