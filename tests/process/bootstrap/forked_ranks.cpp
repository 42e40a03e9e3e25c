#include "tests/process/bootstrap/forked_ranks.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "kernels/core/error.h"

namespace ddp {
namespace {

void write_text(int pipe, const std::string& text) {
  // Texts are far below the size of a pipe.
  EXPECT_EQ(::write(pipe, text.data(), text.size()),
            static_cast<ssize_t>(text.size()));
}

[[noreturn]] void run_child(int rank, int text_pipe,
                            const std::function<std::string(int)>& body) {
  int code = 0;
  try {
    write_text(text_pipe, body(rank));
  } catch (const std::exception& error) {
    write_text(text_pipe, concat(name(kind_of(error)), ": ", error.what()));
    code = 1;
  }
  std::exit(code);
}

std::string read_all(int pipe) {
  std::string text;
  char block[4096];
  for (;;) {
    const auto got = ::read(pipe, block, sizeof(block));
    if (got <= 0) break;
    text.append(block, static_cast<std::size_t>(got));
  }
  ::close(pipe);
  return text;
}

}  // namespace

ForkedRanks::ForkedRanks(int count,
                         const std::function<std::string(int)>& body) {
  std::fflush(nullptr);
  for (int rank = 0; rank < count; ++rank) {
    int text[2];
    int log[2];
    if (::pipe(text) != 0 || ::pipe(log) != 0) throw Error("no pipes");
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(text[0]);
      ::close(log[0]);
      for (const auto& other : children_) {
        ::close(other.text_pipe);
        ::close(other.log_pipe);
      }
      ::dup2(log[1], STDERR_FILENO);
      ::close(log[1]);
      run_child(rank, text[1], body);
    }
    ::close(text[1]);
    ::close(log[1]);
    children_.push_back({pid, false, text[0], log[0]});
  }
}

ForkedRanks::~ForkedRanks() {
  for (auto& child : children_) {
    if (child.is_reaped) continue;
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
    ::close(child.text_pipe);
    ::close(child.log_pipe);
  }
}

void ForkedRanks::signal(int rank, int signal) const {
  ::kill(pid(rank), signal);
}

Outcome ForkedRanks::wait(int rank, Deadline deadline) {
  auto& child = children_.at(static_cast<std::size_t>(rank));
  int status = 0;
  while (::waitpid(child.pid, &status, WNOHANG) == 0) {
    if (deadline.has_passed()) {
      ADD_FAILURE() << "rank " << rank << " hangs";
      ::kill(child.pid, SIGKILL);
      ::waitpid(child.pid, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  child.is_reaped = true;
  Outcome outcome;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.text = read_all(child.text_pipe);
  outcome.log = read_all(child.log_pipe);
  return outcome;
}

std::vector<Outcome> ForkedRanks::wait_all(Deadline deadline) {
  std::vector<Outcome> outcomes;
  for (std::size_t rank = 0; rank < children_.size(); ++rank)
    outcomes.push_back(wait(static_cast<int>(rank), deadline));
  return outcomes;
}

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

}  // namespace ddp
