#include "tests/support/ranks.h"

#include <cstdlib>
#include <exception>
#include <optional>
#include <thread>

#include "kernels/core/error.h"

namespace ddp::test {
namespace {

bool is_launched() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

World& launched_world() {
  static World world = init({.device = "cpu"});
  return world;
}

void run_threads(int size, const std::function<void(World&)>& body,
                 std::chrono::milliseconds timeout) {
  std::vector<World> worlds = make_thread_worlds(size, timeout);
  std::vector<std::exception_ptr> errors(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(worlds[rank]);
      } catch (const std::exception& error) {
        errors[rank] = std::current_exception();
        worlds[rank].control().announce_failure(kind_of(error), error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace

std::vector<int> world_sizes() {
  if (is_launched()) return {launched_world().size()};
  return {1, 2, 3, 4, 8};
}

void run_ranks(int size, const std::function<void(World&)>& body,
               std::chrono::milliseconds timeout) {
  if (!is_launched()) return run_threads(size, body, timeout);
  DDP_EXPECT(launched_world().size() == size, InvalidArgument, "a test for ",
             size, " ranks runs under a launcher with ",
             launched_world().size());
  body(launched_world());
}

}  // namespace ddp::test
