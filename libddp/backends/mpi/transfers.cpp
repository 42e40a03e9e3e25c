#include "libddp/backends/mpi/transfers.h"

#include "kernels/core/error.h"
#include "libddp/backends/mpi/backoff.h"
#include "libddp/backends/mpi/mpi_call.h"

namespace ddp::mpi {
namespace {

// Longer than a piece takes: while pieces move, the thread stays awake.
constexpr std::chrono::microseconds kYielding{500};

}  // namespace

Transfers::~Transfers() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL || !is_alive()) continue;
    const CallLock lock;
    if (messages_[i].is_receive) (void)MPI_Cancel(&requests_[i]);
    (void)MPI_Request_free(&requests_[i]);
  }
}

void Transfers::send(const void* data, std::size_t bytes, int peer, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  DDP_MPI(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag,
                    bounds_.group->comm, &request));
  requests_.push_back(request);
  messages_.push_back({peer, bytes, false});
}

void Transfers::receive(void* data, std::size_t bytes, int peer, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  DDP_MPI(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag,
                    bounds_.group->comm, &request));
  requests_.push_back(request);
  messages_.push_back({peer, bytes, true});
}

void Transfers::wait() {
  if (requests_.empty()) return;
  statuses_.resize(requests_.size());
  Backoff backoff(kYielding);
  while (!test()) {
    bounds_.fault->check();
    if (bounds_.deadline.has_passed()) give_up();
    backoff.pause();
  }
  check_lengths();
  requests_.clear();
  messages_.clear();
}

bool Transfers::test() {
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

void Transfers::check_lengths() const {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (!messages_[i].is_receive) continue;
    int bytes = 0;
    DDP_MPI(MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes));
    DDP_EXPECT(static_cast<std::size_t>(bytes) == messages_[i].bytes,
               InvalidArgument, bounds_.group->names[bounds_.group->rank], ": ",
               bounds_.what, " got ", bytes, " bytes from ",
               bounds_.group->names[messages_[i].peer], " where ",
               messages_[i].bytes, " were due; give equal counts on all ranks");
  }
}

void Transfers::give_up() {
  std::string peers;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    int is_done = 0;
    const CallLock lock;
    (void)MPI_Test(&requests_[i], &is_done, MPI_STATUS_IGNORE);
    const std::string& name = bounds_.group->names[messages_[i].peer];
    if (is_done != 0 || peers.find(name) != std::string::npos) continue;
    peers += concat(peers.empty() ? "" : ", ", name);
  }
  throw Timeout(concat(bounds_.group->names[bounds_.group->rank], ": ",
                       bounds_.what, " waited ",
                       bounds_.deadline.seconds_given(), " s for ",
                       peers.empty() ? "the last message" : peers,
                       "; see what it does and whether all ranks issue the "
                       "same operations, or raise collective_timeout"));
}

}  // namespace ddp::mpi
