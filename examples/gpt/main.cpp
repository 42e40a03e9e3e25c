// gpt: trains a GPT-2 with libddp on all ranks that the launcher started.
#include <csignal>
#include <cstdio>

#include "examples/gpt/ops/cpu/threads.h"
#include "examples/gpt/train/options.h"
#include "examples/gpt/train/trainer.h"
#include "kernels/core/error.h"
#include "libddp/bootstrap/world.h"

namespace {

volatile int stop_requested = 0;

/// The first signal ends the run after an update that all ranks agree on; a
/// second one ends the process as usual.
void request_stop(int signal) {
  stop_requested = 1;
  std::signal(signal, SIG_DFL);
}

ddp::InitOptions init_options(const gpt::TrainOptions& options) {
  ddp::InitOptions init;
  init.device = options.device;
  init.collective_timeout = std::chrono::milliseconds(
      static_cast<std::int64_t>(options.timeout_s * 1e3));
  return init;
}

void train(const ddp::World& world, const gpt::TrainOptions& options) {
  const auto threads = world.environment().get_int("OMP_NUM_THREADS");
  gpt::set_cpu_threads(static_cast<int>(threads.value_or(0)),
                       world.local_size());
  const gpt::GptConfig config = gpt::preset(options.model);
  gpt::Trainer trainer(world, gpt::resolve(options, config, world.size()),
                       config);
  trainer.run(stop_requested);
}

}  // namespace

int main(int argc, char** argv) {
  int exit_code = 0;
  const auto options = gpt::parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  std::signal(SIGTERM, request_stop);
  std::signal(SIGINT, request_stop);
  int rank = -1;
  try {
    const ddp::World world = ddp::init(init_options(*options));
    rank = world.rank();
    try {
      train(world, *options);
    } catch (const std::exception& error) {
      // The others learn of it while this rank's connections are still open.
      world.control().announce_failure(ddp::kind_of(error), error.what());
      throw;
    }
  } catch (const std::exception& error) {
    if (rank >= 0)
      std::fprintf(stderr, "gpt: rank %d: %s\n", rank, error.what());
    else
      std::fprintf(stderr, "gpt: %s\n", error.what());
    return 1;
  }
  return 0;
}
