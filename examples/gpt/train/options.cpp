#include "examples/gpt/train/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "kernels/core/error.h"

namespace gpt {
namespace {

void add_size_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--model", o.model, "tiny, d12, d24, d36 or d48")
      ->check(CLI::IsMember(preset_names()))
      ->capture_default_str();
  app.add_option("--batch", o.batch, "sequences of a micro-batch on a rank")
      ->check(CLI::PositiveNumber);
  app.add_option("--sequence", o.sequence, "tokens of a sequence")
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", o.steps, "updates")->check(CLI::PositiveNumber);
  app.add_option("--accumulation", o.accumulation, "micro-batches of an update")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--global-batch", o.global_batch,
                 "sequences of an update over all ranks")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", o.seed, "of first weights and of the data's order")
      ->capture_default_str();
}

void add_optimizer_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--lr", o.lr, "largest learning rate")
      ->check(CLI::PositiveNumber);
  app.add_option("--warmup", o.warmup, "updates of warm-up")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--min-lr-factor", o.min_lr_factor,
                 "where the cosine ends, as a factor of --lr")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--weight-decay", o.weight_decay, "of matrices")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--beta1", o.beta1)
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--beta2", o.beta2)
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--clip", o.clip, "largest norm of the gradient; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void add_run_options(CLI::App& app, TrainOptions& o) {
  static const std::map<std::string, ddp::DType> kPrecisions = {
      {"fp32", ddp::DType::kFloat32}, {"bf16", ddp::DType::kBFloat16}};
  app.add_option("--precision", o.precision, "fp32 or bf16")
      ->transform(CLI::CheckedTransformer(kPrecisions))
      ->default_str("fp32");
  app.add_option("--device", o.device,
                 "cpu or cuda; default: a GPU if there is one")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--backend", o.backend,
                 "of the communicator; default: by device");
  app.add_option("--bucket-mb", o.bucket_mb, "gradient in a bucket, MB")
      ->check(CLI::PositiveNumber);
  app.add_option("--timeout", o.timeout_s,
                 "seconds until a rank that does not answer is an error")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--drift-check", o.drift_check,
                 "compare the ranks' weights every so many updates; 0: never")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void add_data_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--data", o.data,
                 "text as bytes, or a quoted pattern of .bin shards")
      ->required();
  app.add_option("--val-data", o.val_data,
                 "held-out data; default: the last 5 % of --data");
  app.add_option("--cache-dir", o.cache_dir,
                 "local folder that a rank a machine copies the data to");
  app.add_option("--threads", o.threads, "threads that read ahead")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--val-every", o.val_every,
                 "updates between held-out losses; 0: one at the end")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--val-batches", o.val_batches,
                 "most held-out micro-batches a rank; 0: all")
      ->check(CLI::NonNegativeNumber);
}

void add_output_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--sample", o.sample, "tokens of text to generate")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--temperature", o.temperature, "of that text; 0: greedy")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--print-every", o.print_every, "updates between lines")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--log", o.log, "file for a JSON line an update");
  app.add_option("--out", o.out, "safetensors file to write at the end");
  app.add_option("--init", o.init, "safetensors file to start from");
}

double default_rate(const GptConfig& config) {
  if (config.name == "tiny") return 3e-3;
  if (config.layers <= 12) return 6e-4;
  if (config.layers <= 24) return 3e-4;
  return config.layers <= 36 ? 2.5e-4 : 2e-4;
}

/// Splits the global batch over ranks and micro-batches.
void split_global_batch(TrainOptions& o, int world, std::int64_t batch) {
  if (o.global_batch == 0) {
    if (o.batch == 0) o.batch = batch;
    o.global_batch = o.batch * o.accumulation * world;
    return;
  }
  if (o.batch == 0) {
    o.batch = o.global_batch / (o.accumulation * world);
  } else if (o.accumulation == 1) {
    o.accumulation = o.global_batch / (o.batch * world);
  }
  DDP_EXPECT(o.batch * o.accumulation * world == o.global_batch,
             InvalidArgument, "--global-batch ", o.global_batch,
             " is not --batch ", o.batch, " x --accumulation ", o.accumulation,
             " x ", world, " ranks = ", o.batch * o.accumulation * world,
             "; choose a multiple of the ranks, or leave --batch out");
}

}  // namespace

std::optional<TrainOptions> parse_options(int argc, char** argv,
                                          int& exit_code) {
  TrainOptions options;
  CLI::App app("Trains a GPT-2 on all ranks that the launcher started.");
  // So that a script can put defaults of its own before the user's options.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_size_options(app, options);
  add_optimizer_options(app, options);
  add_run_options(app, options);
  add_data_options(app, options);
  add_output_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error);
    return std::nullopt;
  }
  return options;
}

TrainOptions resolve(TrainOptions options, const GptConfig& config, int world) {
  const bool tiny = config.name == "tiny";
  split_global_batch(options, world, tiny ? 8 : 4);
  if (options.sequence == 0) options.sequence = config.sequence;
  DDP_EXPECT(options.sequence <= config.sequence, InvalidArgument,
             "--sequence ", options.sequence, ", but model ", config.name,
             " has ", config.sequence, " positions; give at most that");
  if (options.steps == 0) options.steps = tiny ? 1200 : 100;
  if (options.warmup < 0)
    options.warmup = std::min<std::int64_t>(50, options.steps / 10);
  DDP_EXPECT(options.warmup < options.steps, InvalidArgument, "--warmup ",
             options.warmup, " leaves nothing of --steps ", options.steps,
             "; give fewer");
  if (options.lr == 0) options.lr = default_rate(config);
  if (options.bucket_mb == 0) options.bucket_mb = tiny ? 0.5 : 25;
  if (options.val_batches < 0) options.val_batches = tiny ? 0 : 20;
  if (options.sample < 0) options.sample = tiny ? 200 : 0;
  return options;
}

}  // namespace gpt
