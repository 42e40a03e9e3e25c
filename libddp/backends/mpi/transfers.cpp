#include "libddp/backends/mpi/transfers.h"

#include "kernels/core/error.h"
#include "libddp/backends/host/backoff.h"
#include "libddp/backends/mpi/mpi_call.h"

namespace ddp::mpi {
namespace {

// Longer than a piece takes: while pieces move, the thread stays awake.
constexpr std::chrono::microseconds kYielding{500};

/// Non-blocking messages move only inside MPI calls, so wait() polls, and a
/// poll can be given up where a blocking call of MPI could not (OpenMPI 4.1).
class MpiTransfers final : public host::Transfers {
 public:
  MpiTransfers(const host::Bounds& bounds, MPI_Comm comm)
      : bounds_(bounds), comm_(comm) {}
  /// Messages that are still in flight are cancelled, which stops those that
  /// have not begun; the memory of others must outlive the process's MPI.
  ~MpiTransfers() override;
  MpiTransfers(const MpiTransfers&) = delete;
  MpiTransfers& operator=(const MpiTransfers&) = delete;

  void send(const void* data, std::size_t bytes, int peer, int tag) override;
  void receive(void* data, std::size_t bytes, int peer, int tag) override;
  void wait() override;
  bool outlives_itself() const noexcept override { return !requests_.empty(); }

 private:
  struct Message {
    int peer;
    std::size_t bytes;
    bool is_receive;
  };

  bool test();
  void check_lengths() const;
  [[noreturn]] void give_up();

  const host::Bounds& bounds_;
  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::vector<Message> messages_;
};

MpiTransfers::~MpiTransfers() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL || !is_alive()) continue;
    const CallLock lock;
    if (messages_[i].is_receive) (void)MPI_Cancel(&requests_[i]);
    (void)MPI_Request_free(&requests_[i]);
  }
}

void MpiTransfers::send(const void* data, std::size_t bytes, int peer,
                        int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  DDP_MPI(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_,
                    &request));
  requests_.push_back(request);
  messages_.push_back({peer, bytes, false});
}

void MpiTransfers::receive(void* data, std::size_t bytes, int peer, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  DDP_MPI(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_,
                    &request));
  requests_.push_back(request);
  messages_.push_back({peer, bytes, true});
}

void MpiTransfers::wait() {
  if (requests_.empty()) return;
  statuses_.resize(requests_.size());
  host::Backoff backoff(kYielding);
  while (!test()) {
    bounds_.fault->check();
    if (bounds_.deadline.has_passed()) give_up();
    backoff.pause();
  }
  check_lengths();
  requests_.clear();
  messages_.clear();
}

bool MpiTransfers::test() {
  int is_done = 0;
  const int result = [&] {
    const CallLock lock;
    return MPI_Testall(static_cast<int>(requests_.size()), requests_.data(),
                       &is_done, statuses_.data());
  }();
  if (result == MPI_SUCCESS) return is_done != 0;
  if (result != MPI_ERR_IN_STATUS) throw_error(result, "MPI_Testall");
  for (const MPI_Status& status : statuses_) {
    if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING)
      throw_error(status.MPI_ERROR, "MPI_Testall");
  }
  throw_error(result, "MPI_Testall");
}

void MpiTransfers::check_lengths() const {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (!messages_[i].is_receive) continue;
    int bytes = 0;
    DDP_MPI(MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes));
    if (static_cast<std::size_t>(bytes) != messages_[i].bytes)
      host::throw_wrong_length(bounds_, messages_[i].peer,
                               static_cast<std::size_t>(bytes),
                               messages_[i].bytes);
  }
}

void MpiTransfers::give_up() {
  std::string peers;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    int is_done = 0;
    const CallLock lock;
    (void)MPI_Test(&requests_[i], &is_done, MPI_STATUS_IGNORE);
    const std::string& name = bounds_.group->names[messages_[i].peer];
    if (is_done != 0 || peers.find(name) != std::string::npos) continue;
    peers += concat(peers.empty() ? "" : ", ", name);
  }
  host::throw_timeout(bounds_, peers);
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm comm) : comm_(comm) {
  DDP_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
}

MpiTransport::~MpiTransport() {
  if (comm_ == MPI_COMM_NULL || !is_alive()) return;
  const CallLock lock;
  (void)MPI_Comm_free(&comm_);
}

std::unique_ptr<host::Transfers> MpiTransport::start(
    const host::Bounds& bounds) {
  return std::make_unique<MpiTransfers>(bounds, comm_);
}

// MPI_Comm_split cannot be given up once it has begun. That all ranks have
// come is known by now: they have told each other color and key.
std::unique_ptr<host::Transport> MpiTransport::split(const host::Bounds&,
                                                     const host::Part& part) {
  MPI_Comm comm = MPI_COMM_NULL;
  DDP_MPI(MPI_Comm_split(comm_, part.color < 0 ? MPI_UNDEFINED : part.color,
                         part.key, &comm));
  if (comm == MPI_COMM_NULL) return nullptr;
  return std::make_unique<MpiTransport>(comm);
}

}  // namespace ddp::mpi
