#include "libddp/bootstrap/hub_client.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "kernels/core/error.h"
#include "libddp/bootstrap/connect.h"
#include "libddp/bootstrap/framed_connection.h"
#include "libddp/bootstrap/identity.h"

namespace ddp {

class HubClient::Impl {
 public:
  Impl(const HubAddress& address, const Greeting& greeting, Deadline deadline) {
    auto link = connect_to_hub(io_, address, greeting, deadline);
    hub_name_ = describe(decode_identity(link.hub_identity));
    connection_ = std::make_shared<FramedConnection>(std::move(link.socket),
                                                     kMaxReplyBytes);
    connection_->start(
        [this](FrameType type, const std::string& payload) {
          receive(type, payload);
        },
        [this](const std::string& reason) { hub_ended(reason); });
    connection_->send(FrameType::kHere, {});
    io_.restart();
    thread_ = std::thread([this] { io_.run(); });
  }

  ~Impl() { disconnect(); }

  void disconnect() noexcept {
    if (!thread_.joinable()) return;
    end_with({ErrorKind::kPeerFailure, "this rank has closed its connection"});
    asio::post(io_, [this] {
      connection_->close();
      io_.stop();
    });
    thread_.join();
  }

  std::optional<std::string> request(FrameType type, std::string_view body,
                                     Deadline deadline, std::string_view what,
                                     Interrupt interrupt) {
    std::unique_lock lock(mutex_);
    const auto id = next_id_++;
    auto& call = calls_[id];
    call.is_interruptible = interrupt == Interrupt::kByFailure;
    if (const auto error = why_not(call)) {
      calls_.erase(id);
      raise(error->kind, concat(what, ": ", error->text));
    }
    send(type, id, body);
    changed_.wait_until(lock, deadline.at(), [&] {
      return call.reply || call.error || why_not(call);
    });
    auto done = std::move(calls_.extract(id).mapped());
    if (done.reply) return std::move(done.reply);
    if (!done.error) done.error = why_not(done);
    if (done.error)
      raise(done.error->kind, concat(what, ": ", done.error->text));
    if (type == FrameType::kGet) send(FrameType::kCancel, id, {});
    return std::nullopt;
  }

  FailureWatch& failures() noexcept { return failures_; }

  void expect_end() noexcept {
    std::lock_guard lock(mutex_);
    end_is_expected_ = true;
  }

 private:
  struct Problem {
    ErrorKind kind;
    std::string text;
  };
  struct Call {
    bool is_interruptible = false;
    std::optional<std::string> reply;
    std::optional<Problem> error;
  };

  /// Why a call cannot be answered any more. REQUIRES: mutex_ is held.
  std::optional<Problem> why_not(const Call& call) const {
    if (ended_) return ended_;
    if (call.is_interruptible && failure_) return failure_;
    return std::nullopt;
  }

  void send(FrameType type, std::int64_t id, std::string_view body) {
    WireWriter out;
    out.number(id);
    auto payload = out.take();
    payload += body;
    asio::post(io_,
               [connection = connection_, type, payload = std::move(payload)] {
                 connection->send(type, payload);
               });
  }

  void receive(FrameType type, const std::string& payload) {
    WireReader in(payload);
    switch (type) {
      case FrameType::kReply: return receive_reply(in);
      case FrameType::kPeerFailed: {
        const int rank = in.small_number();
        const auto kind = static_cast<ErrorKind>(in.small_number());
        return report({rank, kind, in.text()});
      }
      case FrameType::kWorldRefused: {
        const auto kind = static_cast<ErrorKind>(in.small_number());
        return end_with({kind, in.text()});
      }
      case FrameType::kHubLeaves: {
        const auto open = in.text();
        return end_with({ErrorKind::kPeerFailure,
                         concat(hub_name_,
                                " has left the job, and its store and relay "
                                "with it",
                                open.empty() ? "" : "; open were: ", open)});
      }
      default:
        throw CorruptData(concat("a control message of unknown type ",
                                 static_cast<std::uint32_t>(type)));
    }
  }

  void receive_reply(WireReader& in) {
    const auto id = in.number();
    const auto kind = in.small_number();
    auto text = in.text();
    std::lock_guard lock(mutex_);
    const auto call = calls_.find(id);
    if (call == calls_.end()) return;  // its deadline has passed
    if (kind < 0) {
      call->second.reply = std::move(text);
    } else {
      call->second.error = Problem{static_cast<ErrorKind>(kind), text};
    }
    changed_.notify_all();
  }

  void report(const Failure& failure) {
    {
      std::lock_guard lock(mutex_);
      if (end_is_expected_) return;
    }
    // First, so that whoever is woken below finds it.
    failures_.report(failure);
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = {ErrorKind::kPeerFailure, failure.text};
    changed_.notify_all();
  }

  void end_with(Problem problem) {
    std::lock_guard lock(mutex_);
    if (!ended_) ended_ = std::move(problem);
    changed_.notify_all();
  }

  void hub_ended(const std::string& reason) {
    {
      std::lock_guard lock(mutex_);
      if (ended_) return;
    }
    const auto text = concat(
        hub_name_,
        " ended without leaving the job (its control connection: ", reason,
        ")");
    report({0, ErrorKind::kPeerFailure, text});
    end_with({ErrorKind::kPeerFailure, text});
  }

  asio::io_context io_{1};
  std::string hub_name_;
  std::shared_ptr<FramedConnection> connection_;
  FailureWatch failures_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, Call> calls_;
  std::int64_t next_id_ = 1;
  std::optional<Problem> ended_;
  std::optional<Problem> failure_;
  bool end_is_expected_ = false;

  std::thread thread_;
};

HubClient::HubClient(const HubAddress& address, Greeting greeting,
                     Deadline deadline) {
  greeting.token = address.token;
  if (!greeting.identity.empty())
    self_ = describe(decode_identity(greeting.identity));
  impl_ = std::make_unique<Impl>(address, greeting, deadline);
}

HubClient::~HubClient() {
  // A forked child has no thread to join, and the sockets are the parent's.
  if (!guard_.is_in_maker()) static_cast<void>(impl_.release());
}

std::optional<std::string> HubClient::request(FrameType type,
                                              std::string_view body,
                                              Deadline deadline,
                                              std::string_view what,
                                              Interrupt interrupt) {
  check_process(what);
  return impl_->request(type, body, deadline, what, interrupt);
}

FailureWatch& HubClient::failures() noexcept { return impl_->failures(); }

void HubClient::disconnect() noexcept { impl_->disconnect(); }

void HubClient::expect_end() noexcept { impl_->expect_end(); }

}  // namespace ddp
