#include "libddp/bootstrap/wire_format.h"

#include <limits>

#include "kernels/core/error.h"

namespace ddp {
namespace {

template <typename Unsigned>
void append(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i)
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

template <typename Unsigned>
Unsigned extract(std::string_view bytes) {
  Unsigned value = 0;
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i)
    value |= static_cast<Unsigned>(static_cast<unsigned char>(bytes[i]))
             << (8 * i);
  return value;
}

std::string greeting_frame(std::string_view payload, std::uint32_t version) {
  std::string out(kMagic);
  append(out, version);
  append(out, static_cast<std::uint32_t>(payload.size()));
  out += payload;
  return out;
}

}  // namespace

void WireWriter::number(std::int64_t value) {
  append(bytes_, static_cast<std::uint64_t>(value));
}

void WireWriter::text(std::string_view value) {
  number(static_cast<std::int64_t>(value.size()));
  bytes_ += value;
}

std::int64_t WireReader::number() {
  DDP_EXPECT(bytes_.size() >= 8, CorruptData,
             "a control message ends in the middle of a number: ",
             bytes_.size(), " bytes left of 8");
  const auto value = extract<std::uint64_t>(bytes_);
  bytes_.remove_prefix(8);
  return static_cast<std::int64_t>(value);
}

int WireReader::small_number() {
  const auto value = number();
  DDP_EXPECT(value >= std::numeric_limits<int>::min() &&
                 value <= std::numeric_limits<int>::max(),
             CorruptData, "a control message holds the number ", value,
             " where an int is due");
  return static_cast<int>(value);
}

std::string WireReader::text() {
  const auto size = number();
  DDP_EXPECT(size >= 0 && static_cast<std::uint64_t>(size) <= bytes_.size(),
             CorruptData, "a control message claims a text of ", size,
             " bytes where ", bytes_.size(), " are left");
  std::string value(bytes_.substr(0, static_cast<std::size_t>(size)));
  bytes_.remove_prefix(static_cast<std::size_t>(size));
  return value;
}

std::string encode(const Greeting& greeting, std::uint32_t version) {
  WireWriter out;
  out.text(greeting.token);
  out.number(greeting.rank);
  out.number(greeting.world_size);
  out.text(greeting.identity);
  out.number(greeting.is_probe ? 1 : 0);
  return greeting_frame(out.take(), version);
}

Greeting decode_greeting(std::string_view payload) {
  WireReader in(payload);
  Greeting greeting;
  greeting.token = in.text();
  greeting.rank = in.small_number();
  greeting.world_size = in.small_number();
  greeting.identity = in.text();
  greeting.is_probe = in.number() != 0;
  return greeting;
}

std::string encode(const Answer& answer) {
  WireWriter out;
  out.number(static_cast<std::int64_t>(answer.verdict));
  out.text(answer.explanation);
  out.text(answer.identity);
  return greeting_frame(out.take(), kProtocolVersion);
}

Answer decode_answer(std::string_view payload) {
  WireReader in(payload);
  Answer answer;
  answer.verdict = static_cast<Verdict>(in.number());
  answer.explanation = in.text();
  answer.identity = in.text();
  return answer;
}

std::string encode_frame(FrameType type, std::string_view payload) {
  std::string out;
  out.reserve(kFrameHeaderBytes + payload.size());
  append(out, static_cast<std::uint32_t>(type));
  append(out, static_cast<std::uint32_t>(payload.size()));
  out += payload;
  return out;
}

Header decode_greeting_header(std::string_view bytes) {
  DDP_EXPECT(bytes.substr(0, kMagic.size()) == kMagic, CorruptData,
             "the other side does not speak libddp's protocol");
  bytes.remove_prefix(kMagic.size());
  return decode_frame_header(bytes);
}

Header decode_frame_header(std::string_view bytes) {
  return {extract<std::uint32_t>(bytes),
          extract<std::uint32_t>(bytes.substr(4))};
}

}  // namespace ddp
