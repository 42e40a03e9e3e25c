#include "libddp/bootstrap/tcp_store.h"

#include <string>

#include "kernels/core/error.h"

namespace ddp {

TcpStore::TcpStore(std::shared_ptr<HubClient> client, Milliseconds round_trip)
    : client_(std::move(client)), round_trip_(round_trip) {}

void TcpStore::set(std::string_view key, std::string_view value) {
  DDP_EXPECT(key.size() + value.size() <= kMaxMessageBytes, InvalidArgument,
             "store: key \"", key, "\" with a value of ", value.size(),
             " bytes exceeds ", kMaxMessageBytes, " bytes");
  WireWriter out;
  out.text(key);
  out.text(value);
  call(FrameType::kSet, out.take(), concat("store: set \"", key, "\""));
}

std::string TcpStore::get(std::string_view key, Deadline deadline) {
  WireWriter out;
  out.text(key);
  const auto what = concat("store: get \"", key, "\"");
  auto value = client_->request(FrameType::kGet, out.take(), deadline, what);
  DDP_EXPECT(value, Timeout, "store: key \"", key, "\" was not set within ",
             deadline.seconds_given(), " s");
  return std::move(*value);
}

std::optional<std::string> TcpStore::find(std::string_view key) {
  WireWriter out;
  out.text(key);
  auto reply =
      call(FrameType::kFind, out.take(), concat("store: find \"", key, "\""));
  if (!reply.starts_with('1')) return std::nullopt;
  return reply.substr(1);
}

std::int64_t TcpStore::add(std::string_view key, std::int64_t amount) {
  WireWriter out;
  out.text(key);
  out.number(amount);
  return std::stoll(
      call(FrameType::kAdd, out.take(), concat("store: add \"", key, "\"")));
}

std::string TcpStore::call(FrameType type, std::string_view body,
                           std::string_view what) {
  auto reply = client_->request(type, body, Deadline::in(round_trip_), what);
  DDP_EXPECT(reply, Timeout, what, ": rank 0 did not answer within ",
             round_trip_.count(), " ms");
  return std::move(*reply);
}

}  // namespace ddp
