#include "libddp/bootstrap/tcp_control_plane.h"

#include <chrono>
#include <exception>

#include "libddp/base/log.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;

constexpr auto kShortLimit = 1s;

std::string turn_body(std::string_view topic, std::int64_t turn,
                      std::string_view message = {}) {
  WireWriter out;
  out.text(topic);
  out.number(turn);
  out.text(message);
  return out.take();
}

}  // namespace

TcpControlPlane::TcpControlPlane(std::shared_ptr<HubClient> client)
    : client_(std::move(client)) {}

std::vector<std::string> TcpControlPlane::exchange(std::string_view topic,
                                                   std::string_view message,
                                                   Deadline deadline) {
  client_->check_process("control exchange");
  DDP_EXPECT(message.size() <= kMaxMessageBytes, InvalidArgument, "exchange \"",
             topic, "\": a message of ", message.size(), " bytes exceeds ",
             kMaxMessageBytes, " bytes");
  std::int64_t turn = 0;
  {
    std::lock_guard lock(mutex_);
    turn = next_turn_.try_emplace(std::string(topic), 0).first->second++;
  }
  const auto what = concat(client_->self(), ": exchange \"", topic, "\"");
  const auto reply =
      client_->request(FrameType::kExchange, turn_body(topic, turn, message),
                       deadline, what, HubClient::Interrupt::kByFailure);
  DDP_EXPECT(reply, Timeout, what, " waited ", deadline.seconds_given(), " s; ",
             who_is_missing(topic, turn),
             "; look at what those ranks do, or raise the timeout");
  WireReader in(*reply);
  std::vector<std::string> messages;
  for (auto left = in.number(); left > 0; --left) messages.push_back(in.text());
  return messages;
}

std::string TcpControlPlane::who_is_missing(std::string_view topic,
                                            std::int64_t turn) {
  try {
    const auto missing =
        client_->request(FrameType::kMissing, turn_body(topic, turn),
                         Deadline::in(kShortLimit), "asking who is missing");
    return missing.value_or("rank 0, which relays it, does not answer either");
  } catch (const Error& error) {
    return error.what();
  }
}

void TcpControlPlane::announce_failure(ErrorKind kind,
                                       std::string_view text) noexcept {
  try {
    WireWriter out;
    out.number(static_cast<std::int64_t>(kind));
    out.text(concat("failed: ", text));
    client_->request(FrameType::kAnnounce, out.take(),
                     Deadline::in(kShortLimit), "announcing a failure");
  } catch (const std::exception& error) {
    // The hub being gone, the others know already.
    log(LogLevel::kDebug, error.what());
  }
}

std::optional<Failure> TcpControlPlane::failure() const {
  return client_->failures().first();
}

int TcpControlPlane::on_failure(FailureCallback callback) {
  client_->check_process("on_failure");
  return client_->failures().add(std::move(callback));
}

void TcpControlPlane::remove_callback(int id) {
  client_->failures().remove(id);
}

void TcpControlPlane::leave() noexcept {
  try {
    client_->expect_end();
    client_->request(FrameType::kLeave, {}, Deadline::in(kShortLimit),
                     "leaving");
  } catch (const std::exception& error) {
    // The hub being gone, there is nobody to take leave of.
    log(LogLevel::kDebug, error.what());
  }
}

}  // namespace ddp
