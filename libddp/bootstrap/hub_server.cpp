#include "libddp/bootstrap/hub_server.h"

#include <algorithm>
#include <utility>

#include "kernels/core/error.h"
#include "libddp/bootstrap/counter.h"

namespace ddp {
namespace {

constexpr std::int64_t kNoError = -1;

std::string reply_payload(std::int64_t id, std::int64_t kind,
                          std::string_view text) {
  WireWriter out;
  out.number(id);
  out.number(kind);
  out.text(text);
  return out.take();
}

}  // namespace

HubServer::HubServer(asio::io_context& io, Tcp::acceptor acceptor,
                     const HubOptions& options)
    : io_(io),
      port_(acceptor.local_endpoint().port()),
      listener_(std::make_shared<GreetingListener>(io, std::move(acceptor),
                                                   options.greeting_limit)),
      options_(options),
      flush_timer_(io),
      members_(static_cast<std::size_t>(options.identity.world_size)),
      exchanges_(options.identity.world_size) {}

void HubServer::handle(const Connection& connection, int rank, FrameType type,
                       std::string_view payload) {
  if (type == FrameType::kHere) {
    if (rank >= 0) member(rank).is_confirmed = true;
    return;
  }
  WireReader in(payload);
  const Request request{connection, rank, in.number()};
  switch (type) {
    case FrameType::kExchange: return exchange(request, in);
    case FrameType::kMissing: {
      const auto topic = in.text();
      const auto missing = exchanges_.missing(topic, in.number());
      return reply(request,
                   list_missing(missing, static_cast<int>(members_.size())));
    }
    case FrameType::kAnnounce: {
      const auto kind = static_cast<ErrorKind>(in.small_number());
      announce(rank, kind, in.text());
      return reply(request, "");
    }
    case FrameType::kLeave: leave(rank); return reply(request, "");
    default: return handle_store(request, type, in);
  }
}

void HubServer::handle_store(const Request& request, FrameType type,
                             WireReader& in) {
  if (type == FrameType::kCancel) {
    for (auto& [key, requests] : waiting_gets_)
      std::erase_if(requests, [&](const Request& waiting) {
        return waiting.connection == request.connection &&
               waiting.id == request.id;
      });
    return;
  }
  const auto key = in.text();
  const auto found = values_.find(key);
  const bool exists = found != values_.end();
  switch (type) {
    case FrameType::kSet: set(key, in.text()); return reply(request, "");
    case FrameType::kGet:
      if (exists) return reply(request, found->second);
      waiting_gets_[key].push_back(request);
      return;
    case FrameType::kFind:
      return reply(request, exists ? "1" + found->second : "0");
    case FrameType::kAdd: {
      const auto before = exists ? std::optional(found->second) : std::nullopt;
      std::int64_t sum = 0;
      try {
        sum = add_to_counter(key, before, in.number());
      } catch (const InvalidArgument& error) {
        return reply_error(request.connection, request.id, error.kind(),
                           error.what());
      }
      set(key, std::to_string(sum));
      return reply(request, std::to_string(sum));
    }
    default:
      throw CorruptData(concat("a control message of unknown type ",
                               static_cast<std::uint32_t>(type)));
  }
}

void HubServer::set(const std::string& key, std::string value) {
  if (auto waiting = waiting_gets_.extract(key))
    for (const auto& request : waiting.mapped()) reply(request, value);
  values_[key] = std::move(value);
}

void HubServer::exchange(const Request& request, WireReader& in) {
  DDP_EXPECT(request.rank >= 0, CorruptData,
             "an exchange from a connection without a rank");
  const auto topic = in.text();
  const auto turn = in.number();
  const auto complete =
      exchanges_.add(topic, turn, {request.rank, request.id}, in.text());
  if (complete) {
    WireWriter out;
    out.number(static_cast<std::int64_t>(complete->messages.size()));
    for (const auto& message : complete->messages) out.text(*message);
    const auto all = out.take();
    for (const auto& waiter : complete->waiters)
      if (const auto& connection = member(waiter.rank).connection)
        reply({connection, waiter.rank, waiter.request}, all);
    return;
  }
  // What a rank sent before it left still counts; what it did not, cannot come.
  for (const int rank : exchanges_.missing(topic, turn))
    if (member(rank).state == Member::State::kLeft) fail_rounds_lacking(rank);
}

void HubServer::fail_rounds_lacking(int rank) {
  for (const auto& [topic, round] : exchanges_.take_lacking(rank))
    for (const auto& waiter : round.waiters)
      if (const auto& connection = member(waiter.rank).connection)
        reply_error(connection, waiter.request, ErrorKind::kPeerFailure,
                    concat(describe(member(rank).identity),
                           " has left the job; exchange \"", topic,
                           "\" cannot be completed"));
}

void HubServer::announce(int rank, ErrorKind kind, const std::string& text) {
  if (rank < 0 || member(rank).state != Member::State::kJoined) return;
  member(rank).state = Member::State::kFailed;
  WireWriter out;
  out.number(rank);
  out.number(static_cast<std::int64_t>(kind));
  out.text(concat(describe(member(rank).identity), " ", text));
  const auto payload = out.take();
  if (first_failure_.empty()) first_failure_ = payload;
  broadcast(FrameType::kPeerFailed, payload, rank);
}

void HubServer::leave(int rank) {
  if (rank < 0 || member(rank).state != Member::State::kJoined) return;
  member(rank).state = Member::State::kLeft;
  fail_rounds_lacking(rank);
}

void HubServer::forget(const Connection& connection) {
  connections_.erase(connection);
  for (auto& [key, requests] : waiting_gets_)
    std::erase_if(requests, [&](const Request& waiting) {
      return waiting.connection == connection;
    });
}

void HubServer::connection_ended(const Connection& connection, int rank,
                                 const std::string& reason) {
  forget(connection);
  if (rank < 0 || member(rank).connection != connection) return;
  member(rank).connection = nullptr;
  if (!member(rank).is_confirmed) {
    member(rank).state = Member::State::kAbsent;
    return;
  }
  announce(rank, ErrorKind::kPeerFailure,
           concat("ended without leaving the job (its control connection: ",
                  reason, ")"));
}

void HubServer::reply(const Request& request, std::string_view text) {
  request.connection->send(FrameType::kReply,
                           reply_payload(request.id, kNoError, text));
}

void HubServer::reply_error(const Connection& connection, std::int64_t id,
                            ErrorKind kind, std::string_view text) {
  connection->send(FrameType::kReply,
                   reply_payload(id, static_cast<std::int64_t>(kind), text));
}

void HubServer::broadcast(FrameType type, std::string_view payload,
                          int except) {
  for (std::size_t rank = 0; rank < members_.size(); ++rank)
    if (static_cast<int>(rank) != except && members_[rank].connection)
      members_[rank].connection->send(type, payload);
}

void HubServer::shut_down() {
  listener_->close();
  WireWriter out;
  out.text(exchanges_.describe_open());
  const auto goodbye = out.take();
  for (const auto& connection : connections_)
    connection->send(FrameType::kHubLeaves, goodbye);
  stop_when_flushed(Deadline::in(std::chrono::seconds(1)));
}

void HubServer::stop_when_flushed(Deadline deadline) {
  const bool is_flushed =
      std::all_of(connections_.begin(), connections_.end(),
                  [](const auto& one) { return one->is_flushed(); });
  if (is_flushed || deadline.has_passed()) {
    for (const auto& connection : connections_) connection->close();
    connections_.clear();
    return io_.stop();
  }
  flush_timer_.expires_after(std::chrono::milliseconds(5));
  flush_timer_.async_wait(
      [self = shared_from_this(), deadline](const asio::error_code&) {
        self->stop_when_flushed(deadline);
      });
}

}  // namespace ddp
