#include "libddp/backends/tcp/peer_listener.h"

#include <asio/post.hpp>
#include <asio/write.hpp>

#include "kernels/core/error.h"

namespace ddp::tcp {
namespace {

constexpr std::chrono::seconds kGreetingLimit{5};

Tcp::acceptor listen_on_first(asio::io_context& io,
                              const std::vector<std::uint16_t>& ports) {
  std::string problems;
  const std::vector<std::uint16_t> any{0};
  for (const std::uint16_t port : ports.empty() ? any : ports) {
    Listener listener = listen_on(io, port);
    if (listener.acceptor) return std::move(*listener.acceptor);
    problems += concat("\n  port ", port, ": ", describe(listener.error));
  }
  throw ConnectionLost(
      concat("backend tcp cannot listen on any port:", problems,
             "\nGive LIBDDP_PORT_RANGE a port for each communicator of each "
             "rank of this machine, or unset it for any free port"));
}

}  // namespace

PeerListener::PeerListener(const std::vector<std::uint16_t>& ports) {
  Tcp::acceptor acceptor = listen_on_first(io_, ports);
  port_ = acceptor.local_endpoint().port();
  listener_ = std::make_shared<GreetingListener>(io_, std::move(acceptor),
                                                 kGreetingLimit);
}

PeerListener::~PeerListener() {
  stop();
  for (auto& [rank, socket] : arrived_) close_socket(socket);
}

void PeerListener::serve(const std::string& token, int rank, int size) {
  token_ = token;
  rank_ = rank;
  size_ = size;
  listener_->start([this](Tcp::socket socket, std::uint32_t version,
                          const std::string& payload) {
    answer(std::move(socket), version, payload);
  });
  thread_ = std::thread([this] { io_.run(); });
}

void PeerListener::answer(Tcp::socket socket, std::uint32_t version,
                          const std::string& payload) {
  Greeting greeting;
  Answer answer;
  try {
    // Another version may lay out its payload in another way.
    if (version == kProtocolVersion) greeting = decode_greeting(payload);
    answer = judge(version, greeting);
  } catch (const CorruptData&) {
    return close_socket(socket);
  }
  // A few bytes on a new connection: they always fit.
  asio::error_code error;
  asio::write(socket, asio::buffer(encode(answer)), error);
  if (error || answer.verdict != Verdict::kWelcome) return close_socket(socket);
  const std::lock_guard lock(mutex_);
  // Who comes again has given the earlier connection up.
  if (const auto earlier = arrived_.find(greeting.rank);
      earlier != arrived_.end()) {
    close_socket(earlier->second);
    arrived_.erase(earlier);
  }
  arrived_.emplace(greeting.rank, std::move(socket));
  changed_.notify_all();
}

Answer PeerListener::judge(std::uint32_t version,
                           const Greeting& greeting) const {
  if (version != kProtocolVersion)
    return {Verdict::kWrongVersion, "another version of libddp", {}};
  if (greeting.token != token_)
    return {Verdict::kWrongToken, "another rank or job listens there", {}};
  if (greeting.rank <= rank_ || greeting.rank >= size_)
    return {Verdict::kRefused,
            concat("rank ", greeting.rank, " of ", greeting.world_size,
                   " does not connect to rank ", rank_, " of ", size_),
            {}};
  return {};
}

std::vector<int> PeerListener::wait(Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline.at(), [&] {
    return static_cast<int>(arrived_.size()) == size_ - rank_ - 1;
  });
  std::vector<int> missing;
  for (int rank = rank_ + 1; rank < size_; ++rank) {
    if (arrived_.count(rank) == 0) missing.push_back(rank);
  }
  return missing;
}

std::map<int, Tcp::socket> PeerListener::take() {
  stop();
  return std::move(arrived_);
}

void PeerListener::stop() {
  if (!thread_.joinable()) return listener_->close();
  asio::post(io_, [this] {
    listener_->close();
    io_.stop();
  });
  thread_.join();
}

}  // namespace ddp::tcp
