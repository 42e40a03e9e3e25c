#include "benchmarks/collectives/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "libddp/device/event.h"
#include "libddp/device/stream.h"

namespace ddp::bench {
namespace {

using Issue = std::function<Work()>;

Times summary(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return times[static_cast<std::size_t>(
        part * static_cast<double>(times.size() - 1) + 0.5)];
  };
  return {at(0.5), at(0.9)};
}

Deadline soon() { return Deadline::in(std::chrono::minutes(2)); }

// How the operations of a block follow each other.
enum class Order { kBackToBack, kChained, kAlone };

// On the CPU, and alone, every operation is waited for and timed by itself;
// else a block is timed by events, since a host's clock would time launches.
void run_block(Subject& subject, const Issue& issue, Order order,
               int operations, std::vector<double>& times) {
  const Device device = subject.world.device();
  subject.communicator.barrier(subject.stream).wait(soon());
  if (device.is_cpu() || order == Order::kAlone) {
    for (int i = 0; i < operations; ++i) {
      const auto began = std::chrono::steady_clock::now();
      const Work work = issue();
      if (device.is_cpu()) {
        work.wait(soon());
      } else {
        work.block(subject.stream);
        synchronize(subject.stream);
      }
      times.push_back(std::chrono::duration<double, std::micro>(
                          std::chrono::steady_clock::now() - began)
                          .count());
    }
    return;
  }
  Event begin(device, true);
  Event end(device, true);
  begin.record(subject.stream);
  Work last;
  for (int i = 0; i < operations; ++i) {
    last = issue();
    if (order == Order::kChained) last.block(subject.stream);
  }
  last.block(subject.stream);
  end.record(subject.stream);
  end.synchronize();
  times.push_back(Event::elapsed_ms(begin, end) * 1e3 / operations);
}

// All ranks must run as many operations: the slowest decides.
int agree_on_count(Subject& subject, double microseconds,
                   const Settings& settings) {
  const int mine = std::clamp(
      static_cast<int>(settings.block_ms * 1e3 / std::max(1.0, microseconds)),
      1, 500);
  const auto all = subject.world.control().exchange(
      "bench_collectives", std::to_string(mine), soon());
  int least = mine;
  for (const std::string& text : all) least = std::min(least, std::stoi(text));
  return least;
}

Issue through_communicator(Subject& subject, Collective collective,
                           TensorView whole, TensorView own) {
  Communicator& communicator = subject.communicator;
  const StreamView stream = subject.stream;
  switch (collective) {
    case Collective::kAllReduce:
      return [=, &communicator] {
        return communicator.all_reduce(whole, ReduceOp::kSum, stream);
      };
    case Collective::kReduceScatter:
      return [=, &communicator] {
        return communicator.reduce_scatter(whole, own, ReduceOp::kSum, stream);
      };
    case Collective::kAllGather: break;
  }
  return [=, &communicator] {
    return communicator.all_gather(own, whole, stream);
  };
}

Issue raw(Subject& subject, Collective collective, TensorView whole,
          TensorView own) {
  Floor& floor = subject.floor;
  const StreamView stream = subject.stream;
  const TensorView result =
      stream.device.is_cpu() ? subject.scratch.slice(0, own.numel) : own;
  return [=, &floor] {
    switch (collective) {
      case Collective::kAllReduce: floor.all_reduce(whole, stream); break;
      case Collective::kReduceScatter:
        floor.reduce_scatter(whole, result, stream);
        break;
      case Collective::kAllGather: floor.all_gather(own, whole, stream); break;
    }
    return Work();
  };
}

}  // namespace

std::string_view name(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce: return "all_reduce";
    case Collective::kReduceScatter: return "reduce_scatter";
    case Collective::kAllGather: return "all_gather";
  }
  return "unknown";
}

Result measure(Subject& subject, Collective collective, std::size_t bytes,
               const Settings& settings) {
  const int size = subject.communicator.size();
  const auto per_rank = static_cast<std::int64_t>(
      bytes / size_of(DType::kFloat32) / static_cast<std::size_t>(size));
  const TensorView whole = subject.memory.slice(0, per_rank * size);
  const TensorView own =
      whole.slice(per_rank * subject.communicator.rank(), per_rank);
  const Issue ours = through_communicator(subject, collective, whole, own);
  const Issue theirs = raw(subject, collective, whole, own);

  std::vector<double> warm_up;
  run_block(subject, ours, Order::kBackToBack, 5, warm_up);
  run_block(subject, theirs, Order::kBackToBack, 5, warm_up);
  // Values would grow to infinity; zeros move as fast.
  zero_bytes(whole.data, whole.bytes(), subject.stream);
  const int operations =
      agree_on_count(subject, summary(warm_up).median, settings);
  std::vector<double> through_times;
  std::vector<double> chained_times;
  std::vector<double> raw_times;
  std::vector<double> alone_times;
  std::vector<double> raw_alone_times;
  for (int block = 0; block < settings.blocks; ++block) {
    run_block(subject, theirs, Order::kBackToBack, operations, raw_times);
    run_block(subject, ours, Order::kBackToBack, operations, through_times);
    run_block(subject, ours, Order::kChained, operations, chained_times);
    run_block(subject, theirs, Order::kAlone, operations, raw_alone_times);
    run_block(subject, ours, Order::kAlone, operations, alone_times);
  }
  return {collective,
          whole.bytes(),
          summary(through_times),
          summary(chained_times),
          summary(raw_times),
          summary(alone_times),
          summary(raw_alone_times)};
}

double algorithm_bandwidth(const Result& result, double microseconds) {
  return static_cast<double>(result.bytes) / (microseconds * 1e-6);
}

double bus_bandwidth(const Result& result, double microseconds, int world) {
  const double part = static_cast<double>(world - 1) / world;
  const double moved =
      result.collective == Collective::kAllReduce ? 2 * part : part;
  return algorithm_bandwidth(result, microseconds) * moved;
}

}  // namespace ddp::bench
