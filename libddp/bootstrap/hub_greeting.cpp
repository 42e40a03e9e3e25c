#include <algorithm>
#include <utility>

#include "kernels/core/error.h"
#include "libddp/bootstrap/hub_server.h"

namespace ddp {

/// A connection that has not yet said who it is.
struct HubServer::Newcomer {
  Newcomer(asio::io_context& io, Tcp::socket accepted)
      : socket(std::move(accepted)), timer(io) {}
  ~Newcomer() { close_socket(socket); }
  Tcp::socket socket;
  asio::steady_timer timer;
  std::string bytes;
};

void HubServer::accept_next() {
  acceptor_.async_wait(
      Tcp::acceptor::wait_read,
      [self = shared_from_this()](const asio::error_code& error) {
        if (error || !self->acceptor_.is_open()) return;
        while (auto socket = accept_from(self->io_, self->acceptor_)) {
          set_control_options(*socket);
          self->read_greeting(
              std::make_shared<Newcomer>(self->io_, std::move(*socket)));
        }
        self->accept_next();
      });
}

void HubServer::read_greeting(const std::shared_ptr<Newcomer>& newcomer) {
  // Whoever connects and stays silent is hung up on.
  newcomer->timer.expires_after(options_.greeting_limit);
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
                     Header header;
                     try {
                       header = decode_greeting_header(newcomer->bytes);
                     } catch (const CorruptData&) {
                       return;  // a stranger's: no answer
                     }
                     if (header.payload_bytes > kMaxGreetingBytes) return;
                     newcomer->bytes.resize(header.payload_bytes);
                     asio::async_read(
                         newcomer->socket, asio::buffer(newcomer->bytes),
                         [self, newcomer, header](
                             const asio::error_code& failed, std::size_t) {
                           if (!failed)
                             self->answer(newcomer, header.kind,
                                          newcomer->bytes);
                         });
                   });
}

void HubServer::answer(const std::shared_ptr<Newcomer>& newcomer,
                       std::uint32_t version, std::string_view payload) {
  newcomer->timer.cancel();
  Greeting greeting;
  Answer answer;
  try {
    // Another version may lay out its payload in another way.
    if (version == kProtocolVersion) greeting = decode_greeting(payload);
    answer = judge(version, greeting);
  } catch (const CorruptData&) {
    return;
  }
  answer.identity = encode(options_.identity);
  const auto connection = std::make_shared<FramedConnection>(
      std::move(newcomer->socket), kMaxRequestBytes);
  connections_.insert(connection);
  connection->send_bytes(encode(answer));
  if (answer.verdict == Verdict::kWelcome && !greeting.is_probe) {
    admit(connection, greeting);
  } else {
    dismiss(connection);
  }
  if (!greeting.is_probe) count_greeting();
}

void HubServer::admit(const Connection& connection, const Greeting& greeting) {
  const auto weak_self = weak_from_this();
  const auto weak_connection = std::weak_ptr(connection);
  const int rank = greeting.rank;
  connection->start(
      [weak_self, weak_connection, rank](FrameType type,
                                         const std::string& payload) {
        const auto self = weak_self.lock();
        const auto sender = weak_connection.lock();
        if (self && sender) self->handle(sender, rank, type, payload);
      },
      [weak_self, weak_connection, rank](const std::string& reason) {
        const auto self = weak_self.lock();
        const auto ended = weak_connection.lock();
        if (self && ended) self->connection_ended(ended, rank, reason);
      });
  if (rank < 0) return;
  auto& joining = member(rank);
  joining.state = Member::State::kJoined;
  joining.identity = decode_identity(greeting.identity);
  joining.connection = connection;
  if (!first_failure_.empty())
    connection->send(FrameType::kPeerFailed, first_failure_);
}

/// Keeps the connection until the other side has read the answer and hangs up.
void HubServer::dismiss(const Connection& connection) {
  connection->start(
      [](FrameType, const std::string&) {
        throw CorruptData("a refused connection goes on talking");
      },
      [weak_self = weak_from_this(),
       weak_connection = std::weak_ptr(connection)](const std::string&) {
        const auto self = weak_self.lock();
        const auto ended = weak_connection.lock();
        if (self && ended) self->forget(ended);
      });
}

Answer HubServer::judge(std::uint32_t version, const Greeting& greeting) {
  if (version != kProtocolVersion)
    return {Verdict::kWrongVersion,
            concat(describe(options_.identity), " speaks version ",
                   kProtocolVersion, " of the control protocol, this process ",
                   version, "; use the same libddp in all processes"),
            {}};
  if (greeting.token != options_.token)
    return {Verdict::kWrongToken,
            concat(describe(options_.identity),
                   " serves another job (its token differs)"),
            {}};
  if (greeting.is_probe || greeting.rank == -1) return {};
  if (refusal_) return {Verdict::kRefused, *refusal_, {}};
  const auto identity = decode_identity(greeting.identity);
  if (auto why = find_disagreement(greeting, identity)) return refuse(*why);
  switch (member(greeting.rank).state) {
    case Member::State::kAbsent: return {};
    case Member::State::kJoined:
      if (!member(greeting.rank).is_confirmed &&
          encode(member(greeting.rank).identity) == greeting.identity)
        return {};  // the same process, once more
      return refuse(concat(
          "rank ", greeting.rank, " exists twice: as ",
          describe(member(greeting.rank).identity), " and as ",
          describe(identity),
          "; start each rank once. If these are two jobs, give them different "
          "ports or LIBDDP_JOB_TOKENs"));
    case Member::State::kLeft:
    case Member::State::kFailed: break;
  }
  return {Verdict::kComeBack,
          concat(describe(options_.identity), " still serves a world that ",
                 describe(identity), " has left"),
          {}};
}

std::optional<std::string> HubServer::find_disagreement(
    const Greeting& greeting, const Identity& identity) const {
  const int world_size = options_.identity.world_size;
  if (greeting.world_size != world_size)
    return concat(
        "the ranks disagree on the world size: ", describe(options_.identity),
        " has ", world_size, ", ", describe(identity), " has ",
        greeting.world_size, "; start all ranks with one world size");
  if (greeting.rank < 0 || greeting.rank >= world_size)
    return concat(describe(identity), " is outside the world of ", world_size,
                  " ranks of ", describe(options_.identity),
                  "; ranks count from 0, so start no more processes than the "
                  "world size");
  return std::nullopt;
}

/// Before the world is complete, one that does not fit ends it for all; later
/// it is told, and the others go on.
Answer HubServer::refuse(const std::string& why) {
  if (!is_complete()) {
    refusal_ = why;
    WireWriter out;
    out.number(static_cast<std::int64_t>(ErrorKind::kInvalidArgument));
    out.text(why);
    broadcast(FrameType::kWorldRefused, out.take());
  }
  return {Verdict::kRefused, why, {}};
}

bool HubServer::is_complete() const {
  return std::none_of(members_.begin(), members_.end(), [](const auto& one) {
    return one.state == Member::State::kAbsent;
  });
}

void HubServer::count_greeting() {
  std::lock_guard lock(greetings_mutex_);
  ++greetings_;
  greeted_.notify_all();
}

void HubServer::wait_for_greetings(Deadline deadline) {
  std::unique_lock lock(greetings_mutex_);
  greeted_.wait_until(lock, deadline.at(), [&] {
    return greetings_ >= options_.identity.world_size;
  });
}

}  // namespace ddp
