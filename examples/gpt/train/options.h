/// \file
/// TrainOptions: what the command line asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "examples/gpt/config.h"
#include "kernels/core/dtype.h"

namespace gpt {

/// Values of 0 or below that mean "by model" are resolved by resolve().
struct TrainOptions {
  std::string model = "tiny";
  /// Sequences of a micro-batch on a rank. 0: 8 for tiny, 4 for others.
  std::int64_t batch = 0;
  /// Tokens of a sequence. 0: all that the model has positions for.
  std::int64_t sequence = 0;
  /// Updates. 0: 1000 for tiny, 100 for others.
  std::int64_t steps = 0;
  /// Micro-batches of an update.
  std::int64_t accumulation = 1;
  /// Sequences of an update over all ranks; gives what is not given of batch
  /// and accumulation, so that any number of ranks trains alike. 0: batch x
  /// accumulation x ranks.
  std::int64_t global_batch = 0;

  /// Largest learning rate. 0: 3e-3 for tiny, 6e-4 for d12, less for more.
  double lr = 0;
  /// Updates of linear warm-up. -1: a tenth of all, at most 50.
  std::int64_t warmup = -1;
  /// Where the cosine ends, as a factor of lr.
  double min_lr_factor = 0;
  double weight_decay = 0.1;  ///< of matrices; vectors are never decayed
  double beta1 = 0.9;
  double beta2 = 0.95;
  double clip = 1.0;  ///< largest norm of the gradient; 0: none

  ddp::DType precision = ddp::DType::kFloat32;
  std::uint64_t seed = 0;
  std::string device;    ///< "cpu", "cuda" or empty: a GPU if there is one
  std::string backend;   ///< of the communicator; empty: by device
  double bucket_mb = 0;  ///< 0: 0.5 MB for tiny, 64 for others
  double timeout_s = 600;
  std::int64_t drift_check = 0;

  std::string data;      ///< text file, or shell pattern of .bin shards
  std::string val_data;  ///< empty: the last 5 % of data
  std::string cache_dir;
  int threads = 1;  ///< that read ahead
  std::int64_t val_every = 0;
  /// Most held-out micro-batches a rank. -1: all for tiny, 20 for others.
  std::int64_t val_batches = -1;
  /// Tokens of generated text. -1: 200 for tiny, 0 for others.
  std::int64_t sample = -1;
  double temperature = 0.8;  ///< 0: always the likeliest token
  std::int64_t print_every = 1;

  std::string log;   ///< JSON lines
  std::string out;   ///< safetensors written at the end
  std::string init;  ///< safetensors read at the start
};

/// Reads the command line. Nothing is returned when the program is to end at
/// once, with `exit_code`: after --help, or with a message for an option that
/// is wrong.
std::optional<TrainOptions> parse_options(int argc, char** argv,
                                          int& exit_code);

/// Fills in what depends on the model and the number of ranks. Throws
/// InvalidArgument for values that do not fit together, with both of them.
TrainOptions resolve(TrainOptions options, const GptConfig& config, int world);

}  // namespace gpt
