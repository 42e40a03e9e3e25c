/// \file
/// Transfers: messages in flight between the ranks of one communicator, that
/// can be given up.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "libddp/base/deadline.h"
#include "libddp/comm/fault.h"

namespace ddp::mpi {

/// Who the messages travel between.
struct Group {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  std::vector<std::string> names;  ///< of the ranks, for error texts
};

/// One operation's bounds and name.
struct Bounds {
  const Group* group = nullptr;
  const Fault* fault = nullptr;  ///< set from outside to give up
  Deadline deadline = Deadline::never();
  std::string what;  ///< "all_reduce of 25 MiB float32"
};

/// A set of messages that are waited for together. Non-blocking messages move
/// only inside MPI calls, so wait() polls, and a poll can be given up where a
/// blocking call of MPI could not (OpenMPI 4.1). Messages of one tag between
/// two ranks arrive in the order in which they are posted.
class Transfers {
 public:
  explicit Transfers(const Bounds& bounds) : bounds_(bounds) {}
  /// Messages that are still in flight are cancelled, which stops those that
  /// have not begun; the memory of others must outlive the process's MPI.
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Bytes to or from rank `peer`. REQUIRES: bytes < 2^31.
  void send(const void* data, std::size_t bytes, int peer, int tag);
  void receive(void* data, std::size_t bytes, int peer, int tag);

  /// Nothing is in flight.
  bool is_empty() const noexcept { return requests_.empty(); }

  /// Throws what the fault holds, Timeout that names the peers that are
  /// waited for, or InvalidArgument if a message was shorter than asked for.
  void wait();

 private:
  struct Message {
    int peer;
    std::size_t bytes;
    bool is_receive;
  };

  bool test();
  void check_lengths() const;
  [[noreturn]] void give_up();

  const Bounds& bounds_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::vector<Message> messages_;
};

}  // namespace ddp::mpi
