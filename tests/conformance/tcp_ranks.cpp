// Ranks of the suite as processes that this program forks: backend tcp.
//
//   conformance_tcp RANKS [GoogleTest's options]
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "tests/conformance/process_ranks.h"
#include "tests/process/bootstrap/forked_ranks.h"

namespace ddp::conformance {

std::string backend_name() { return "tcp"; }

namespace {

constexpr int kWorlds = 8;  // the first, and one for each test in its own
constexpr std::chrono::minutes kLimit{9};

std::string tcp_url(int port) { return concat("tcp://127.0.0.1:", port); }

int run_rank(int argc, char** argv, int rank, int size,
             const std::vector<int>& ports) {
  InitOptions options;
  options.rank = rank;
  options.world_size = size;
  options.device = "cpu";
  options.announce = false;
  options.init_method = tcp_url(ports.at(0));
  std::size_t worlds = 0;
  return run_tests_in_world(argc, argv, options, [&](InitOptions& next) {
    next.init_method = tcp_url(ports.at(++worlds));
  });
}

int run(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 2;
  std::vector<int> ports;
  for (int i = 0; i < kWorlds; ++i) ports.push_back(free_port());
  ForkedRanks ranks(size, [&](int rank) -> std::string {
    if (const int code = run_rank(argc, argv, rank, size, ports))
      std::exit(code);
    return "";
  });
  int code = 0;
  for (const Outcome& outcome : ranks.wait_all(Deadline::in(kLimit))) {
    std::cout << outcome.text << outcome.log;
    if (outcome.exit_code != 0) code = 1;
  }
  return code;
}

}  // namespace
}  // namespace ddp::conformance

int main(int argc, char** argv) { return ddp::conformance::run(argc, argv); }
