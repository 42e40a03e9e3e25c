/// \file
/// Times of one collective through the Communicator and raw, in alternating
/// blocks of one process.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/collectives/floor.h"

namespace ddp::bench {

enum class Collective { kAllReduce, kReduceScatter, kAllGather };
std::string_view name(Collective collective);

/// Microseconds of one operation.
struct Times {
  double median = 0;
  double p90 = 0;
};

struct Result {
  Collective collective;
  std::size_t bytes;  ///< of the whole tensor
  Times through;      ///< the Communicator, one operation after another
  Times chained;      ///< each waited for by the producer's stream
  Times raw;          ///< the floor
  Times alone;        ///< the Communicator, the host waiting for each
  Times raw_alone;    ///< the floor, likewise: the latency
};

struct Settings {
  int blocks = 20;  ///< of each kind
  double block_ms = 20;
};

/// What is measured; the memory is all of `memory`, from its begin.
struct Subject {
  const World& world;
  Communicator& communicator;
  Floor& floor;
  StreamView stream;
  TensorView memory;   ///< fp32
  TensorView scratch;  ///< fp32, a slice's worth: MPI's reduce_scatter's
};

Result measure(Subject& subject, Collective collective, std::size_t bytes,
               const Settings& settings);

/// Bytes a second over time.
double algorithm_bandwidth(const Result& result, double microseconds);
/// The same times what a rank must move for a byte of the tensor:
/// 2 (W-1)/W for all_reduce, else (W-1)/W.
double bus_bandwidth(const Result& result, double microseconds, int world);

}  // namespace ddp::bench
