// bench_collectives: what a Communicator costs over the raw collective.
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "benchmarks/collectives/measure.h"
#include "libddp/device/stream.h"

namespace ddp::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::vector<std::size_t> default_sizes(Device device) {
  if (device.is_cpu()) return {8, kMiB, 16 * kMiB, 64 * kMiB};
  return {8,         4096,       256 << 10,  2 * kMiB,   16 * kMiB,
          64 * kMiB, 128 * kMiB, 256 * kMiB, 1024 * kMiB};
}

// "model name" of the first processor, for people who compare files.
std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  utsname system{};
  uname(&system);
  return system.machine;
}

nlohmann::json as_json(const Times& times, const Result& result, int world) {
  return {
      {"median_us", times.median},
      {"p90_us", times.p90},
      {"algorithm_gb_per_s", algorithm_bandwidth(result, times.median) * 1e-9},
      {"bus_gb_per_s", bus_bandwidth(result, times.median, world) * 1e-9}};
}

void print(const Subject& subject, const Result& result, std::ostream* json) {
  const int world = subject.world.size();
  const auto row = [&](std::string_view path, const Times& times) {
    std::printf("%-15s %11zu  %-13s %10.1f %10.1f %8.2f %8.2f %7.3f\n",
                std::string(name(result.collective)).c_str(), result.bytes,
                std::string(path).c_str(), times.median, times.p90,
                algorithm_bandwidth(result, times.median) * 1e-9,
                bus_bandwidth(result, times.median, world) * 1e-9,
                times.median / result.raw.median);
  };
  row("raw", result.raw);
  row("communicator", result.through);
  row("chained", result.chained);
  row("raw alone", result.raw_alone);
  row("alone", result.alone);
  std::fflush(stdout);
  if (json == nullptr) return;
  *json << nlohmann::json{{"benchmark", "collectives"},
                          {"machine", processor()},
                          {"world", world},
                          {"device", ddp::name(subject.world.device())},
                          {"backend", subject.communicator.backend()},
                          {"floor", subject.floor.name()},
                          {"dtype", "float32"},
                          {"collective", name(result.collective)},
                          {"bytes", result.bytes},
                          {"raw", as_json(result.raw, result, world)},
                          {"communicator",
                           as_json(result.through, result, world)},
                          {"chained", as_json(result.chained, result, world)},
                          {"raw_alone",
                           as_json(result.raw_alone, result, world)},
                          {"alone", as_json(result.alone, result, world)},
                          {"time_ratio",
                           result.through.median / result.raw.median},
                          {"latency_ratio",
                           result.alone.median / result.raw_alone.median}}
        << std::endl;
}

void run(const World& world, std::vector<std::size_t> sizes,
         const Settings& settings, std::ostream* json) {
  auto floor =
      world.device().is_cuda() ? make_nccl_floor(world) : make_mpi_floor(world);
  DDP_EXPECT(floor != nullptr && world.size() > 1, InvalidArgument,
             "bench_collectives compares with NCCL or MPI: start two or more "
             "ranks, such as `mpirun -n 2 bench_collectives`");
  const auto communicator = make_communicator(world);
  if (sizes.empty()) sizes = default_sizes(world.device());
  const std::size_t most = *std::max_element(sizes.begin(), sizes.end());
  const Buffer memory = communicator->allocate(most);
  const Buffer scratch = Buffer::allocate(most, world.device());
  const Stream stream(world.device());
  zero_bytes(memory.data(), most, stream);
  zero_bytes(scratch.data(), most, stream);
  const auto numel = static_cast<std::int64_t>(most / 4);
  Subject subject{world,
                  *communicator,
                  *floor,
                  stream,
                  memory.view(0, numel, DType::kFloat32),
                  scratch.view(0, numel, DType::kFloat32)};
  floor->enroll(subject.memory);
  if (world.rank() == 0) {
    std::printf("%s, %d ranks on %s, %s against %s, float32\n",
                processor().c_str(), world.size(),
                ddp::name(world.device()).c_str(),
                std::string(communicator->backend()).c_str(),
                std::string(floor->name()).c_str());
    std::printf("%-15s %11s  %-13s %10s %10s %8s %8s %7s\n", "collective",
                "bytes", "path", "median us", "p90 us", "alg GB/s", "bus GB/s",
                "ratio");
  }
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kReduceScatter,
        Collective::kAllGather}) {
    for (const std::size_t bytes : sizes) {
      const Result result = measure(subject, collective, bytes, settings);
      if (world.rank() == 0) print(subject, result, json);
    }
  }
  synchronize(stream);
}

}  // namespace
}  // namespace ddp::bench

int main(int argc, char** argv) {
  CLI::App app{"Collectives through a Communicator against raw calls"};
  std::vector<std::size_t> sizes;
  ddp::bench::Settings settings;
  std::string device;
  std::string path;
  app.add_option("--bytes", sizes, "sizes of the whole tensor");
  app.add_option("--blocks", settings.blocks, "blocks of each kind");
  app.add_option("--block-ms", settings.block_ms, "length of a block");
  app.add_option("--device", device, "cuda or cpu; a GPU where there is one");
  app.add_option("--json", path, "append a JSON line for each result");
  CLI11_PARSE(app, argc, argv);
  try {
    ddp::InitOptions options;
    options.device = device;
    const ddp::World world = ddp::init(options);
    std::ofstream json;
    if (!path.empty() && world.rank() == 0) json.open(path, std::ios::app);
    try {
      ddp::bench::run(world, sizes, settings, json.is_open() ? &json : nullptr);
    } catch (const ddp::Error& error) {
      world.control().announce_failure(error.kind(), error.what());
      throw;
    }
  } catch (const std::exception& error) {
    std::cerr << "bench_collectives: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
