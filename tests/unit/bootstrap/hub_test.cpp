#include "libddp/bootstrap/hub.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "kernels/core/error.h"
#include "libddp/bootstrap/wire_format.h"
#include "tests/unit/bootstrap/hub_fixture.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// A plain socket to the hub, as a stranger has it.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address),
                        sizeof(address)),
              0);
    const timeval limit{2, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  ~Stranger() { ::close(socket_); }
  void say(std::string_view bytes) {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// All bytes until the hub hangs up; nothing if it does not.
  std::optional<std::string> hear_all() {
    std::string heard;
    char block[512];
    for (;;) {
      const auto got = ::recv(socket_, block, sizeof(block), 0);
      if (got < 0 && errno == ECONNRESET) return heard;
      if (got < 0) return std::nullopt;
      if (got == 0) return heard;
      heard.append(block, static_cast<std::size_t>(got));
    }
  }
  std::string hear(std::size_t bytes) {
    std::string heard(bytes, '\0');
    const auto got = ::recv(socket_, heard.data(), bytes, MSG_WAITALL);
    heard.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return heard;
  }
  Answer hear_answer() {
    const auto header = decode_greeting_header(hear(kGreetingHeaderBytes));
    return decode_answer(hear(header.payload_bytes));
  }

 private:
  int socket_;
};

Greeting greeting(const TestHub& hub, int rank) {
  return {hub.token, rank, hub.world_size,
          encode(test_identity(rank, hub.world_size)), false};
}

Greeting as_rank(int rank) {
  Greeting result;
  result.rank = rank;
  result.world_size = 2;
  return result;
}

template <typename Error, typename Act>
std::string text_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(WireFormat, IsAsItsTextSays) {
  WireWriter out;
  out.number(-2);
  out.text("ab");
  EXPECT_EQ(out.take(), std::string("\xfe\xff\xff\xff\xff\xff\xff\xff"
                                    "\x02\0\0\0\0\0\0\0"
                                    "ab",
                                    18));
  EXPECT_EQ(encode_frame(FrameType::kLeave, "xyz"),
            std::string("\x0a\0\0\0\x03\0\0\0xyz", 11));
}

TEST(WireFormat, RefusesLengthsThatLeadOutside) {
  WireWriter out;
  out.number(1000);
  const auto bytes = out.take() + "short";
  EXPECT_THROW(WireReader(bytes).text(), CorruptData);
  EXPECT_THROW(WireReader("1234567").number(), CorruptData);
  WireWriter negative;
  negative.number(-1);
  const auto more = negative.take();
  EXPECT_THROW(WireReader(more).text(), CorruptData);
}

TEST(Hub, HangsUpOnAStrangerWithoutAWord) {
  const TestHub hub(1);
  Stranger stranger(hub.hub->port());
  stranger.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(stranger.hear_all(), "");
}

TEST(Hub, HangsUpOnAGreetingThatIsTooLong) {
  const TestHub hub(1);
  Stranger stranger(hub.hub->port());
  stranger.say(std::string(kMagic) +
               std::string("\1\0\0\0\xff\xff\xff\x7f", 8));
  EXPECT_EQ(stranger.hear_all(), "");
}

TEST(Hub, HangsUpOnThoseWhoStaySilent) {
  const TestHub hub(1, "job", 100ms);
  Stranger silent(hub.hub->port());
  Stranger half(hub.hub->port());
  half.say(kMagic);
  EXPECT_EQ(silent.hear_all(), "");
  EXPECT_EQ(half.hear_all(), "");
}

TEST(Hub, TellsAnotherVersionBothVersions) {
  const TestHub hub(1);
  Stranger other(hub.hub->port());
  other.say(encode(greeting(hub, 0), kProtocolVersion + 1));
  const auto answer = other.hear_answer();
  EXPECT_EQ(answer.verdict, Verdict::kWrongVersion);
  EXPECT_THAT(answer.explanation, HasSubstr(concat(kProtocolVersion)));
  EXPECT_THAT(answer.explanation, HasSubstr(concat(kProtocolVersion + 1)));
}

TEST(Hub, RefusesAnotherJobsToken) {
  const TestHub hub(1);
  Stranger other(hub.hub->port());
  auto theirs = greeting(hub, 0);
  theirs.token = "another job";
  other.say(encode(theirs));
  EXPECT_EQ(other.hear_answer().verdict, Verdict::kWrongToken);
}

TEST(Hub, ServesItsRanksWhileStrangersKnock) {
  const TestHub hub(1);
  Stranger silent(hub.hub->port());
  Stranger loud(hub.hub->port());
  loud.say("garbage garbage garbage");
  TcpStore store(hub.connect(0));
  store.set("a", "1");
  EXPECT_EQ(store.find("a"), "1");
}

TEST(Hub, EndsAMemberThatSendsGarbageAndTellsTheOthers) {
  const TestHub hub(2);
  TcpControlPlane good(hub.connect(0));
  Stranger bad(hub.hub->port());
  bad.say(encode(greeting(hub, 1)));
  ASSERT_EQ(bad.hear_answer().verdict, Verdict::kWelcome);
  bad.say(encode_frame(FrameType::kHere, ""));
  bad.say(encode_frame(static_cast<FrameType>(77), "????????????????????"));
  const auto text =
      text_of<PeerFailure>([&] { good.exchange("x", "", Deadline::in(5s)); });
  EXPECT_THAT(text, HasSubstr("rank 1 (host1, pid 1001)"));
}

TEST(Hub, NamesBothClaimantsOfARankToEveryone) {
  const TestHub hub(3);
  TcpControlPlane first(hub.connect(1));
  const auto second_text = text_of<InvalidArgument>([&] { hub.connect(1); });
  const auto first_text = text_of<InvalidArgument>(
      [&] { first.exchange("x", "", Deadline::in(5s)); });
  const auto late_text = text_of<InvalidArgument>([&] { hub.connect(2); });
  for (const auto& text : {first_text, second_text, late_text}) {
    EXPECT_THAT(text, HasSubstr("rank 1 exists twice"));
    EXPECT_THAT(text, HasSubstr("(host1, pid 1001)"));
  }
}

TEST(Hub, NamesBothSidesWhenWorldSizesDiffer) {
  const TestHub hub(2);
  TcpControlPlane first(hub.connect(0));
  const auto theirs = text_of<InvalidArgument>([&] { hub.connect(1, 3); });
  const auto ours = text_of<InvalidArgument>(
      [&] { first.exchange("x", "", Deadline::in(5s)); });
  for (const auto& text : {ours, theirs}) {
    EXPECT_THAT(text, HasSubstr("rank 0 (host0, pid 1000) has 2"));
    EXPECT_THAT(text, HasSubstr("rank 1 (host1, pid 1001) has 3"));
  }
}

TEST(Hub, LetsACompleteWorldGoOnWhenAClaimantComesLate) {
  const TestHub hub(2);
  TcpControlPlane zero(hub.connect(0));
  TcpControlPlane one(hub.connect(1));
  EXPECT_THAT(text_of<InvalidArgument>([&] { hub.connect(1); }),
              HasSubstr("rank 1 exists twice"));
  std::thread other([&] { one.exchange("x", "", Deadline::in(5s)); });
  EXPECT_EQ(zero.exchange("x", "", Deadline::in(5s)).size(), 2u);
  other.join();
}

TEST(Hub, ReportsARankWhoseConnectionEndsBeforeItLeaves) {
  const TestHub hub(3);
  TcpControlPlane zero(hub.connect(0));
  TcpControlPlane two(hub.connect(2));
  auto doomed = hub.connect(1);
  doomed.reset();
  for (TcpControlPlane* plane : {&zero, &two}) {
    const auto text = text_of<PeerFailure>(
        [&] { plane->exchange("x", "", Deadline::in(5s)); });
    EXPECT_THAT(text, HasSubstr("rank 1 (host1, pid 1001) ended without"));
  }
}

TEST(Hub, LetsAProcessComeAgainThatMissedItsWelcome) {
  const TestHub hub(2);
  TcpControlPlane zero(hub.connect(0));
  Stranger impatient(hub.hub->port());
  impatient.say(encode(greeting(hub, 1)));
  ASSERT_EQ(impatient.hear_answer().verdict, Verdict::kWelcome);
  // While the first connection still seems open, and after its end.
  TcpControlPlane one(hub.connect(1));
  std::thread other([&] { one.exchange("x", "", Deadline::in(5s)); });
  EXPECT_EQ(zero.exchange("x", "", Deadline::in(5s)).size(), 2u);
  other.join();
  EXPECT_FALSE(zero.failure().has_value());
}

TEST(Hub, TellsWhoJoinsLateOfAFailureBefore) {
  const TestHub hub(3);
  TcpControlPlane zero(hub.connect(0));
  hub.connect(1).reset();
  TcpControlPlane late(hub.connect(2));
  EXPECT_THAT(
      text_of<PeerFailure>([&] { late.exchange("x", "", Deadline::in(5s)); }),
      HasSubstr("rank 1 (host1, pid 1001)"));
}

TEST(Hub, IsMissedWhenItEndsInOrder) {
  auto hub = std::make_unique<TestHub>(2);
  TcpControlPlane one(hub->connect(1));
  hub.reset();
  EXPECT_THAT(
      text_of<PeerFailure>([&] { one.exchange("x", "", Deadline::in(5s)); }),
      HasSubstr("rank 0 (host0, pid 1000) has left the job"));
  EXPECT_FALSE(one.failure().has_value());
  one.leave();
}

TEST(Hub, NamesAPortThatAnotherProgramHas) {
  const int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taken, 4), 0);
  ::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size);
  HubOptions options;
  options.identity = test_identity(0, 2);
  options.ports = {ntohs(address.sin_port)};
  options.origin = "MASTER_PORT=x";
  const auto text = text_of<ConnectionLost>([&] { Hub hub(options); });
  EXPECT_THAT(text, HasSubstr(concat("port ", options.ports[0],
                                     " is in use by another program")));
  EXPECT_THAT(text, HasSubstr("MASTER_PORT=x"));
  // With a choice the next one is taken.
  options.ports.push_back(0);
  EXPECT_NE(Hub(options).port(), 0);
  ::close(taken);
}

TEST(Hub, NamesAPortThatAnotherJobHasAndTheSameJobsTwin) {
  const TestHub first(2);
  HubOptions options;
  options.identity = test_identity(0, 2);
  options.ports = {first.hub->port()};
  options.token = "another";
  EXPECT_THAT(text_of<ConnectionLost>([&] { Hub hub(options); }),
              HasSubstr("in use by another job"));
  options.token = first.token;
  EXPECT_THAT(text_of<InvalidArgument>([&] { Hub hub(options); }),
              HasSubstr("rank 0 exists twice"));
}

TEST(Hub, TakesItsPortAgainRightAfterItsEnd) {
  auto first = std::make_unique<TestHub>(1);
  HubOptions options;
  options.identity = test_identity(0, 1);
  options.ports = {first->hub->port()};
  const auto client = first->connect(0);
  first.reset();  // its side of the connection is in TIME_WAIT
  EXPECT_EQ(Hub(options).port(), options.ports[0]);
}

TEST(Connect, TriesEveryAddressAndListsThemWithErrno) {
  std::uint16_t closed_port = 0;
  {
    const TestHub hub(1);
    closed_port = hub.hub->port();
  }
  HubAddress address{{"127.0.0.1", "::1", "localhost"},
                     {closed_port},
                     "job",
                     "MASTER_ADDR=localhost"};
  const auto text = text_of<ConnectionLost>(
      [&] { HubClient client(address, as_rank(1), Deadline::in(300ms)); });
  EXPECT_THAT(text, HasSubstr(concat("127.0.0.1:", closed_port,
                                     ": Connection refused (errno 111)")));
  EXPECT_THAT(text, HasSubstr(concat("[::1]:", closed_port)));
  EXPECT_THAT(text, HasSubstr("MASTER_ADDR=localhost"));
}

TEST(Connect, FindsAnIpv4ListenerBehindAnIpv6Address) {
  const TestHub hub(1);
  auto address = hub.address();
  address.hosts = {"::1", "127.0.0.1"};
  EXPECT_NO_THROW(HubClient(address, as_rank(-1), Deadline::in(5s)));
}

TEST(Connect, QuotesANameThatCannotBeResolvedWithinSeconds) {
  HubAddress address{{"no-such-host.invalid"},
                     {29500},
                     "job",
                     "MASTER_ADDR=no-such-host.invalid"};
  const auto start = std::chrono::steady_clock::now();
  const auto text = text_of<ConnectionLost>(
      [&] { HubClient client(address, as_rank(1), Deadline::in(60s)); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  EXPECT_THAT(text, HasSubstr("MASTER_ADDR=no-such-host.invalid"));
}

TEST(Connect, PassesStrangersOnTheWayToItsHub) {
  const TestHub other(2, "another job");
  const TestHub hub(2);
  auto address = hub.address();
  address.ports = {other.hub->port(), hub.hub->port()};
  Greeting ours = greeting(hub, 1);
  EXPECT_NO_THROW(HubClient(address, ours, Deadline::in(5s)));
}

}  // namespace
}  // namespace ddp
