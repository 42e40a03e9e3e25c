#include "tests/process/engine/training_ranks.h"

#include "kernels/core/error.h"
#include "libddp/base/log.h"
#include "tests/support/training.h"

namespace ddp::test {
namespace {

constexpr std::int64_t kNumel = 1000;

InitOptions init_options(int rank, int size, int port) {
  InitOptions options;
  options.rank = rank;
  options.world_size = size;
  options.init_method = concat("tcp://127.0.0.1:", port);
  options.device = "cpu";
  options.timeout = std::chrono::seconds(20);
  options.collective_timeout = std::chrono::seconds(2);
  options.announce = false;
  return options;
}

std::vector<ParameterSpec> parameters() {
  return {{.name = "first", .shape = {kNumel}},
          {.name = "second", .shape = {kNumel}}};
}

DataParallelOptions engine_options() {
  DataParallelOptions options;
  options.optimizer = Sgd{.lr = 0.5f};
  options.bucket_bytes = kNumel * sizeof(float);
  return options;
}

// What is left to be seen are warnings and errors.
InitOptions quietly(InitOptions options) {
  set_log_level(LogLevel::kWarning);
  return options;
}

}  // namespace

Training::Training(int rank, int size, int port)
    : world(init(quietly(init_options(rank, size, port)))),
      dp(world, parameters(), engine_options()) {
  DDP_EXPECT(dp.communicator().backend() == "tcp", Error, "backend ",
             dp.communicator().backend());
  dp.initialize([](int, std::span<float> values) {
    for (float& value : values) value = 1;
  });
}

void Training::step(const std::function<void()>& in_backward) {
  const std::vector<double> gradient(kNumel, world.rank());
  in_backward();
  give(dp, 1, gradient);
  give(dp, 0, gradient);
  dp.step({.loss = 1.0}, StreamView::cpu());
}

std::string Training::result() {
  return concat("weight 0 is ", dp.read_weight(0).at(0));
}

}  // namespace ddp::test
