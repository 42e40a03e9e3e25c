#include "libddp/backends/tcp/transport.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <thread>

#include "kernels/core/error.h"
#include "libddp/backends/host/algorithms.h"
#include "libddp/backends/host/backoff.h"

namespace ddp::tcp {
namespace {

// Longer than a piece takes: while pieces move, the thread stays awake.
constexpr std::chrono::microseconds kYielding{500};

using namespace std::chrono_literals;

/// How soon an abort is noticed by one who sleeps.
constexpr auto kLongestSleep = 20ms;
/// Why a rank's connection ended is better said by the control plane, which
/// hears of it at about the same time.
constexpr auto kPatience = 2s;

class TcpTransfers final : public host::Transfers {
 public:
  TcpTransfers(const host::Bounds& bounds, TcpTransport& transport)
      : bounds_(bounds), transport_(transport) {}
  ~TcpTransfers() override {
    // A link that knows of messages that go cannot be used any more.
    for (const Message& message : messages_) {
      if (!message.is_done)
        transport_.link(message.peer).give_up("an operation was given up");
    }
  }
  TcpTransfers(const TcpTransfers&) = delete;
  TcpTransfers& operator=(const TcpTransfers&) = delete;

  void send(const void* data, std::size_t bytes, int peer, int tag) override {
    Message& message = add(const_cast<void*>(data), bytes, peer, tag);
    transport_.link(peer).send(message);
  }
  void receive(void* data, std::size_t bytes, int peer, int tag) override {
    Message& message = add(data, bytes, peer, tag);
    message.is_receive = true;
    transport_.link(peer).receive(message);
  }

  void wait() override {
    host::Backoff backoff(kYielding);
    while (true) {
      const bool has_moved = transport_.progress();
      if (is_done()) break;
      bounds_.fault->check();
      check_links();
      if (bounds_.deadline.has_passed())
        host::throw_timeout(bounds_, open_peers());
      if (has_moved) {
        backoff = host::Backoff(kYielding);
      } else if (backoff.is_yielding()) {
        std::this_thread::yield();
      } else {
        transport_.sleep(bounds_.deadline);
      }
    }
    messages_.clear();
  }

 private:
  Message& add(void* data, std::size_t bytes, int peer, int tag) {
    Message& message = messages_.emplace_back();
    message.header.tag = static_cast<std::uint32_t>(tag);
    message.header.bytes = bytes;
    message.data = static_cast<char*>(data);
    message.peer = peer;
    return message;
  }

  bool is_done() const {
    return std::all_of(messages_.begin(), messages_.end(),
                       [](const Message& message) { return message.is_done; });
  }

  void check_links() {
    for (const Message& message : messages_) {
      if (message.is_done) continue;
      const Link& link = transport_.link(message.peer);
      if (link.is_mismatched()) throw_mismatch(link);
      if (link.is_broken()) throw_broken(message.peer);
    }
  }

  [[noreturn]] void throw_mismatch(const Link& link) const {
    const MessageHeader& due = link.due().header;
    const MessageHeader& arrived = link.arrived();
    const int peer = link.due().peer;
    const std::string& self = bounds_.group->names[bounds_.group->rank];
    const std::string& other = bounds_.group->names[peer];
    DDP_EXPECT(arrived.magic == due.magic, CorruptData, self, ": ",
               bounds_.what, " got bytes from ", other,
               " that are no message of libddp; use the same version of "
               "libddp, and one kind of machine, for all ranks");
    DDP_EXPECT(arrived.tag == due.tag, InvalidArgument, self, ": ",
               bounds_.what, " (", host::describe_tag(int(due.tag)),
               ") got a message of another operation (",
               host::describe_tag(int(arrived.tag)), ") from ", other,
               "; all ranks must issue the same operations, with the same "
               "types, in one order");
    host::throw_wrong_length(bounds_, peer, arrived.bytes, due.bytes);
  }

  [[noreturn]] void throw_broken(int peer) const {
    const Deadline patience = Deadline::in(kPatience);
    while (!patience.has_passed()) {
      bounds_.fault->check();
      if (bounds_.deadline.has_passed())
        host::throw_timeout(bounds_, open_peers());
      std::this_thread::sleep_for(5ms);
    }
    throw PeerFailure(concat(
        bounds_.group->names[bounds_.group->rank], ": ", bounds_.what,
        " lost its connection to ", bounds_.group->names[peer], ": ",
        transport_.link(peer).why(), "; look at what ended or left there"));
  }

  std::string open_peers() const {
    std::string peers;
    for (const Message& message : messages_) {
      const std::string& name = bounds_.group->names[message.peer];
      if (message.is_done || peers.find(name) != std::string::npos) continue;
      peers += concat(peers.empty() ? "" : ", ", name);
    }
    return peers;
  }

  const host::Bounds& bounds_;
  TcpTransport& transport_;
  std::deque<Message> messages_;  // which stay where they are
};

// Every rank's text, of whatever length.
std::vector<std::string> gather_texts(const host::Bounds& bounds,
                                      const std::string& mine) {
  const int size = bounds.group->size;
  const auto gather = [&](const void* input, void* output, std::int64_t bytes) {
    const Operation operation{.kind = OperationKind::kAllGather,
                              .dtype = DType::kUInt8,
                              .numel = bytes * size};
    host::all_gather(
        bounds, operation,
        {const_cast<void*>(input), bytes, DType::kUInt8, Device::cpu()},
        {output, bytes * size, DType::kUInt8, Device::cpu()});
  };
  const std::int64_t length = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(size));
  gather(&length, lengths.data(), sizeof length);
  const std::int64_t longest =
      *std::max_element(lengths.begin(), lengths.end());
  std::string padded = mine;
  padded.resize(static_cast<std::size_t>(longest));
  std::string all(static_cast<std::size_t>(longest * size), '\0');
  gather(padded.data(), all.data(), longest);
  std::vector<std::string> texts;
  for (int rank = 0; rank < size; ++rank)
    texts.push_back(all.substr(static_cast<std::size_t>(rank * longest),
                               static_cast<std::size_t>(lengths[rank])));
  return texts;
}

}  // namespace

TcpTransport::TcpTransport(std::vector<Link> links,
                           std::vector<std::uint16_t> ports)
    : links_(std::move(links)), ports_(std::move(ports)) {}

std::unique_ptr<host::Transfers> TcpTransport::start(
    const host::Bounds& bounds) {
  return std::make_unique<TcpTransfers>(bounds, *this);
}

std::unique_ptr<host::Transport> TcpTransport::split(const host::Bounds& bounds,
                                                     const host::Part& part) {
  Meeting meeting(ports_);
  const auto contacts = gather_texts(bounds, meeting.contact());
  if (part.color < 0) return nullptr;
  std::vector<std::string> chosen;
  std::vector<std::string> names;
  int rank = 0;
  for (const int member : part.members) {
    if (member == bounds.group->rank) rank = static_cast<int>(chosen.size());
    chosen.push_back(contacts[static_cast<std::size_t>(member)]);
    names.push_back(bounds.group->names[static_cast<std::size_t>(member)]);
  }
  const auto check = [&] { bounds.fault->check(); };
  auto links = meeting.connect(rank, chosen, names, check, bounds.deadline);
  return std::make_unique<TcpTransport>(std::move(links), ports_);
}

bool TcpTransport::progress() {
  bool has_moved = false;
  for (Link& link : links_) {
    has_moved |= link.write_some();
    has_moved |= link.read_some();
  }
  return has_moved;
}

void TcpTransport::sleep(Deadline deadline) {
  std::vector<pollfd> polls;
  for (const Link& link : links_) {
    const int events = (link.wants_to_send() ? POLLOUT : 0) |
                       (link.wants_to_receive() ? POLLIN : 0);
    if (events != 0)
      polls.push_back({link.descriptor(), static_cast<short>(events), 0});
  }
  const auto limit =
      std::min<Deadline::Clock::duration>(deadline.remaining(), kLongestSleep);
  const auto rounded = std::chrono::ceil<Milliseconds>(limit);
  (void)::poll(polls.data(), polls.size(), static_cast<int>(rounded.count()));
}

}  // namespace ddp::tcp
