#include "tests/conformance/process_ranks.h"

#include <gtest/gtest.h>

#include "libddp/device/stream.h"

namespace ddp::conformance {
namespace {

const World* the_world = nullptr;
InitOptions the_options;

bool run_in(const World& world, const std::function<void(Rank&)>& body) {
  try {
    const auto communicator = make_communicator(world, backend_name());
    EXPECT_EQ(communicator->backend(), backend_name());
    const Stream stream(world.device());
    Rank rank{world, *communicator, stream};
    body(rank);
    // A rank that left early must not be missing in the next test.
    (void)world.control().exchange("end of test", "",
                                   Deadline::in(std::chrono::seconds(60)));
  } catch (const std::exception& error) {
    ADD_FAILURE() << world.describe(world.rank()) << ": " << error.what();
    world.control().announce_failure(ErrorKind::kError, error.what());
  }
  return true;
}

}  // namespace

std::vector<int> world_sizes() { return {the_world->size()}; }

void run_on_ranks(int, const std::function<void(Rank&)>& body) {
  run_in(*the_world, body);
}

bool run_on_ranks_with_timeout(int, Milliseconds timeout,
                               const std::function<void(Rank&)>& body) {
  InitOptions options = the_options;
  options.collective_timeout = timeout;
  options.announce = false;
  return run_in(init(options), body);
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
