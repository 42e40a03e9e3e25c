#include "libddp/bootstrap/connect.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "kernels/core/error.h"
#include "libddp/bootstrap/resolve.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;

/// One address may take this long before the next one gets its turn.
constexpr auto kAttemptLimit = 3s;
/// A stranger on our port may be a job that is just ending.
constexpr auto kStrangerPatience = 10s;

/// Runs one asynchronous operation, at most until the deadline.
template <typename Start>
asio::error_code run_within(asio::io_context& io, Tcp::socket& socket,
                            Deadline deadline, Start start) {
  std::optional<asio::error_code> result;
  start([&](const asio::error_code& error, auto&&...) { result = error; });
  io.restart();
  io.run_until(deadline.at());
  if (result) return *result;
  asio::error_code ignored;
  socket.cancel(ignored);
  io.restart();
  io.run();
  return asio::error::timed_out;
}

std::optional<Answer> read_answer(asio::io_context& io, Tcp::socket& socket,
                                  Deadline deadline, std::string* problem) {
  const auto read = [&](std::string& bytes) {
    return run_within(io, socket, deadline, [&](auto done) {
      asio::async_read(socket, asio::buffer(bytes), done);
    });
  };
  std::string bytes(kGreetingHeaderBytes, '\0');
  if (const auto error = read(bytes)) {
    *problem =
        "connected, but no answer to libddp's greeting: " + describe(error);
    return std::nullopt;
  }
  try {
    const auto header = decode_greeting_header(bytes);
    DDP_EXPECT(header.payload_bytes <= kMaxGreetingBytes, CorruptData,
               "an answer of ", header.payload_bytes, " bytes");
    bytes.resize(header.payload_bytes);
    if (const auto error = read(bytes)) throw CorruptData(describe(error));
    return decode_answer(bytes);
  } catch (const CorruptData& error) {
    *problem = concat("another program listens there: ", error.what());
    return std::nullopt;
  }
}

}  // namespace

Attempt greet(asio::io_context& io, const Tcp::endpoint& endpoint,
              const Greeting& greeting, Deadline deadline) {
  Attempt attempt;
  try {
    attempt.socket = open_socket(io, endpoint.protocol());
  } catch (const asio::system_error& error) {
    attempt.problem = describe(error.code());
    return attempt;
  }
  Tcp::socket& socket = *attempt.socket;
  auto error = run_within(io, socket, deadline, [&](auto done) {
    socket.async_connect(endpoint, done);
  });
  if (!error) {
    const std::string bytes = encode(greeting);
    error = run_within(io, socket, deadline, [&](auto done) {
      asio::async_write(socket, asio::buffer(bytes), done);
    });
  }
  if (error) {
    attempt.problem = describe(error);
  } else {
    attempt.answer = read_answer(io, socket, deadline, &attempt.problem);
  }
  if (!attempt.answer) close_socket(socket);
  return attempt;
}

std::string name(const Tcp::endpoint& endpoint) {
  const auto address = endpoint.address().to_string();
  return endpoint.address().is_v6()
             ? concat("[", address, "]:", endpoint.port())
             : concat(address, ":", endpoint.port());
}

namespace {

/// One call of connect_to_hub().
class Search {
 public:
  Search(asio::io_context& io, const HubAddress& address,
         const Greeting& greeting, Deadline deadline)
      : io_(io), address_(address), greeting_(greeting), deadline_(deadline) {}

  HubLink run() {
    const auto endpoints = resolve_all(address_, deadline_);
    auto pause = 20ms;
    for (;;) {
      for (const auto& endpoint : endpoints)
        if (auto link = try_one(endpoint, endpoints.size()))
          return std::move(*link);
      if (deadline_.has_passed() || strangers_wont_go()) fail();
      std::this_thread::sleep_for(
          std::min<Deadline::Clock::duration>(pause, deadline_.remaining()));
      pause = std::min(pause * 2, 300ms);
    }
  }

 private:
  std::optional<HubLink> try_one(const Tcp::endpoint& endpoint,
                                 std::size_t count) {
    const auto share = deadline_.remaining() / static_cast<int>(count);
    const auto limit =
        std::clamp<Deadline::Clock::duration>(share, 500ms, kAttemptLimit);
    auto attempt = greet(io_, endpoint, greeting_,
                         Deadline::in(std::min<Deadline::Clock::duration>(
                             limit, deadline_.remaining())));
    if (!attempt.answer) {
      note(endpoint, attempt.problem);
      return std::nullopt;
    }
    return judge(endpoint, *attempt.answer, *attempt.socket);
  }

  std::optional<HubLink> judge(const Tcp::endpoint& endpoint,
                               const Answer& answer, Tcp::socket& socket) {
    if (answer.verdict == Verdict::kWelcome)
      return HubLink{std::move(socket), answer.identity};
    close_socket(socket);
    if (answer.verdict == Verdict::kRefused)
      throw InvalidArgument(answer.explanation);
    note(endpoint, answer.explanation);
    if (answer.verdict != Verdict::kComeBack) ++strangers_[name(endpoint)];
    return std::nullopt;
  }

  void note(const Tcp::endpoint& endpoint, const std::string& problem) {
    // An attempt that the deadline cut short says less than one before it.
    if (deadline_.has_passed()) {
      problems_.try_emplace(name(endpoint), problem);
    } else {
      problems_[name(endpoint)] = problem;
    }
  }

  /// Whether every address that listens at all has been a stranger's for long.
  bool strangers_wont_go() const {
    return address_.ports.size() == 1 && !strangers_.empty() &&
           Deadline::Clock::now() - start_ > kStrangerPatience;
  }

  [[noreturn]] void fail() const {
    std::string tried;
    for (const auto& [where, problem] : problems_)
      tried += concat("\n  ", where, ": ", problem);
    throw ConnectionLost(concat(
        "rank ", greeting_.rank, " found no rank 0 of its job (",
        address_.origin, ") within ", deadline_.seconds_given(), " s; tried",
        tried,
        "\nCheck that rank 0 runs, that the address is rank 0's, and that no "
        "firewall closes the port (LIBDDP_PORT_RANGE names open ones)"));
  }

  asio::io_context& io_;
  const HubAddress& address_;
  const Greeting& greeting_;
  const Deadline deadline_;
  const Deadline::Clock::time_point start_ = Deadline::Clock::now();
  std::map<std::string, std::string> problems_;
  std::map<std::string, int> strangers_;
};

}  // namespace

HubLink connect_to_hub(asio::io_context& io, const HubAddress& address,
                       const Greeting& greeting, Deadline deadline) {
  auto link = Search(io, address, greeting, deadline).run();
  set_control_options(link.socket);
  return link;
}

std::optional<Answer> probe_local_port(std::uint16_t port,
                                       const std::string& token) {
  asio::io_context io;
  Greeting greeting;
  greeting.token = token;
  greeting.is_probe = true;
  for (const asio::ip::address& address :
       {asio::ip::address(asio::ip::address_v4::loopback()),
        asio::ip::address(asio::ip::address_v6::loopback())}) {
    auto attempt =
        greet(io, Tcp::endpoint(address, port), greeting, Deadline::in(500ms));
    if (attempt.socket) close_socket(*attempt.socket);
    if (attempt.answer) return attempt.answer;
  }
  return std::nullopt;
}

}  // namespace ddp
