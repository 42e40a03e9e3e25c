// Ranks of the suite as threads of this process: backends local and solo.
#include <gtest/gtest.h>

#include <exception>
#include <thread>

#include "tests/conformance/ranks.h"

namespace ddp::conformance {

std::string backend_name() { return "local"; }

std::vector<int> world_sizes() { return {1, 2, 3, 4, 8}; }

void run_in_new_world(int size, Milliseconds timeout, Ending,
                      const std::function<void(Rank&)>& body) {
  const std::vector<World> worlds = make_thread_worlds(size, timeout);
  std::vector<std::thread> threads;
  for (const World& world : worlds) {
    threads.emplace_back([&world, &body] {
      try {
        const auto communicator = make_communicator(world);
        EXPECT_EQ(communicator->backend(),
                  world.size() == 1 ? "solo" : "local");
        Rank rank{world, *communicator, StreamView::cpu()};
        body(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << world.describe(world.rank()) << ": " << error.what();
        world.control().announce_failure(ErrorKind::kError, error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_on_ranks(int size, const std::function<void(Rank&)>& body) {
  run_in_new_world(size, std::chrono::seconds(60), Ending::kTogether, body);
}

}  // namespace ddp::conformance
