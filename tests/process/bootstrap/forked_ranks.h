/// \file
/// Ranks as forked processes that tell their parent what they saw.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "libddp/base/deadline.h"

namespace ddp {

/// What became of one rank.
struct Outcome {
  int exit_code = -1;  ///< -1 if a signal ended it
  int signal = 0;      ///< that ended it
  std::string text;    ///< what its body returned, or the error it threw
  std::string log;     ///< its standard error
};

/// Forks a process for each rank. REQUIRES: this process has one thread.
class ForkedRanks {
 public:
  /// In the child: what `body` returns is its text and the exit code is 0; an
  /// exception's kind and text make the text, and the exit code is 1.
  ForkedRanks(int count, const std::function<std::string(int)>& body);
  /// Kills and reaps what is left.
  ~ForkedRanks();

  pid_t pid(int rank) const { return children_.at(size_t(rank)).pid; }
  void signal(int rank, int signal) const;
  /// Waits for a rank's end; kills it at the deadline, which is a failure.
  Outcome wait(int rank, Deadline deadline);
  std::vector<Outcome> wait_all(Deadline deadline);

 private:
  struct Child {
    pid_t pid = -1;
    bool is_reaped = false;
    int text_pipe = -1;
    int log_pipe = -1;
  };
  std::vector<Child> children_;
};

/// A TCP port that nobody listens on.
int free_port();

}  // namespace ddp
