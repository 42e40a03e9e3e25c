#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "benchmarks/gpt_ops/checks.h"
#include "benchmarks/gpt_ops/timings.h"

namespace {

int run(const std::vector<std::string>& arguments) {
  bench::TimingOptions options;
  bool checks = true, timings = true;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const auto number = [&] {
      DDP_EXPECT(i + 1 < arguments.size(), InvalidArgument, argument,
                 " wants a number after it");
      return std::atoi(arguments[++i].c_str());
    };
    if (argument == "--checks") {
      timings = false;
    } else if (argument == "--timings") {
      checks = false;
    } else if (argument == "--json") {
      options.json = true;
    } else if (argument == "--batch") {
      options.batch = number();
    } else if (argument == "--sequence") {
      options.sequence = number();
    } else {
      throw ddp::InvalidArgument(
          argument + " is unknown; use --checks, --timings, --json, " +
          "--batch N or --sequence N");
    }
  }
  if (ddp::visible_gpu_count() == 0)
    throw ddp::Unavailable("bench_gpt_ops needs a GPU, and none is visible");
  const ddp::Stream stream(ddp::Device::cuda(0));
  const ddp::DeviceGuard guard(stream.view().device);
  const int failures = checks ? bench::run_checks(stream) : 0;
  if (timings) bench::run_timings(stream, options);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_gpt_ops: %s\n", error.what());
    return 2;
  }
}
