#include "tests/conformance/process_ranks.h"

#include <gtest/gtest.h>

#include "libddp/device/stream.h"

namespace ddp::conformance {
namespace {

const World* the_world = nullptr;
InitOptions the_options;

void wait_for_all(const World& world) {
  (void)world.control().exchange("end of test", "",
                                 Deadline::in(std::chrono::seconds(60)));
}

void run_in(const World& world, const std::function<void(Rank&)>& body) {
  try {
    const auto communicator = make_communicator(world, backend_name());
    EXPECT_EQ(communicator->backend(), backend_name());
    const Stream stream(world.device());
    Rank rank{world, *communicator, stream};
    body(rank);
  } catch (const std::exception& error) {
    ADD_FAILURE() << world.describe(world.rank()) << ": " << error.what();
    world.control().announce_failure(ErrorKind::kError, error.what());
  }
}

}  // namespace

std::vector<int> world_sizes() { return {the_world->size()}; }

void run_on_ranks(int, const std::function<void(Rank&)>& body) {
  run_in(*the_world, [&](Rank& rank) {
    body(rank);
    // A rank that is done must not be missing to those that are not.
    wait_for_all(rank.world);
  });
}

void run_in_new_world(int, Milliseconds timeout, Ending ending,
                      const std::function<void(Rank&)>& body) {
  InitOptions options = the_options;
  options.collective_timeout = timeout;
  options.announce = false;
  const World world = init(options);
  run_in(world, body);
  // A world that has failed can no longer be met in; the first one can.
  wait_for_all(ending == Ending::kFailed ? *the_world : world);
}

int run_tests_in_world(int argc, char** argv, const InitOptions& options) {
  const World world = init(options);
  the_world = &world;
  the_options = options;
  testing::InitGoogleTest(&argc, argv);
  const int code = RUN_ALL_TESTS();
  the_world = nullptr;
  return code;
}

}  // namespace ddp::conformance
