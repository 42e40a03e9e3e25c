// bench_step: ms of a training step of GPT-2 with and without the reduction of
// gradients, in alternating blocks of steps, and so what the reduction costs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>

#include "benchmarks/step/silent_communicator.h"
#include "examples/gpt/model/model.h"
#include "examples/gpt/model/parameters.h"
#include "examples/gpt/train/engine_access.h"
#include "examples/gpt/train/uploader.h"
#include "libddp/device/event.h"
#include "libddp/device/stream.h"

namespace {

using ddp::DataParallel;

struct Options {
  std::string model = "d12";
  std::string precision = "bf16";
  std::string device;
  std::int64_t batch = 32;
  std::int64_t sequence = 0;
  int stage = 0;
  int block = 10;
  int rounds = 12;
  double bucket_mb = 25;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Times steps of GPT-2 with and without reduction."};
  app.add_option("--model", options.model, "preset of the example");
  app.add_option("--precision", options.precision, "fp32 or bf16");
  app.add_option("--device", options.device, "cpu or cuda");
  app.add_option("--batch", options.batch, "sequences a rank");
  app.add_option("--sequence", options.sequence, "tokens of each");
  app.add_option("--stage", options.stage, "ZeRO stage");
  app.add_option("--block", options.block, "steps of a block");
  app.add_option("--rounds", options.rounds, "pairs of blocks");
  app.add_option("--bucket-mb", options.bucket_mb, "MB of a bucket");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle]
                           : (values[middle - 1] + values[middle]) / 2;
}

/// The model, its engine and one batch of random tokens.
class Bench {
 public:
  Bench(const ddp::World& world, const Options& options)
      : world_(world),
        options_(options),
        config_(gpt::preset(options.model)),
        dtype_(options.precision == "bf16" ? ddp::DType::kBFloat16
                                           : ddp::DType::kFloat32),
        shape_{options.batch,
               options.sequence ? options.sequence : config_.sequence},
        stream_(world.device()),
        model_(config_, shape_.batch, shape_.sequence, dtype_,
               world.device().is_cpu() ? gpt::make_cpu_ops(dtype_)
                                       : gpt::make_cuda_ops(dtype_, stream_)),
        uploader_(model_, shape_.rows()),
        engine_(world, gpt::parameters(config_, dtype_), engine_options()),
        access_(engine_) {
    engine_.initialize([&](int p, std::span<float> values) {
      gpt::initialize(config_, p, 0, values);
    });
    std::mt19937 random(world.rank());
    std::uniform_int_distribution<std::int32_t> token(
        0, static_cast<std::int32_t>(config_.vocabulary) - 1);
    x_.resize(shape_.rows());
    y_.resize(shape_.rows());
    for (auto& each : x_) each = token(random);
    for (auto& each : y_) each = token(random);
  }

  /// Milliseconds a step of a block, by the device's clock.
  double block(bool with_reduction) {
    *silent_ = !with_reduction;
    ddp::Event begin(world_.device(), true), end(world_.device(), true);
    const auto host = std::chrono::steady_clock::now();
    begin.record(stream_);
    for (int i = 0; i < options_.block; ++i) step();
    end.record(stream_);
    ddp::synchronize(stream_);
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - host;
    engine_.poll_reports();
    const double ms = world_.device().is_cpu()
                          ? took.count()
                          : ddp::Event::elapsed_ms(begin, end);
    return ms / options_.block;
  }

  std::int64_t tokens() const { return shape_.rows() * world_.size(); }
  std::string backend() {
    return std::string(engine_.communicator().backend());
  }

 private:
  ddp::DataParallelOptions engine_options() {
    ddp::DataParallelOptions options;
    options.zero_stage = options_.stage;
    options.precision = dtype_ == ddp::DType::kBFloat16
                            ? ddp::Precision::bf16()
                            : ddp::Precision::fp32();
    options.optimizer = ddp::AdamW{.lr = 1e-5f, .weight_decay = 0.1f};
    options.clip_norm = 1.0;
    options.bucket_bytes = static_cast<std::size_t>(options_.bucket_mb * 1e6);
    options.decorate = [this](std::unique_ptr<ddp::Communicator> inner) {
      return std::make_unique<ddp::bench::SilentCommunicator>(std::move(inner),
                                                              silent_);
    };
    return options;
  }

  void step() {
    uploader_.upload(x_.data(), y_.data(), shape_.rows());
    model_.forward(
        access_, shape_,
        {.loss_count = static_cast<double>(shape_.rows()), .backward = true});
    model_.backward(access_);
    engine_.step({.device_loss = model_.loss()}, stream_);
  }

  ddp::World world_;
  Options options_;
  gpt::GptConfig config_;
  ddp::DType dtype_;
  gpt::BatchShape shape_;
  ddp::Stream stream_;
  gpt::Gpt model_;
  gpt::Uploader uploader_;
  std::shared_ptr<bool> silent_ = std::make_shared<bool>(false);
  DataParallel engine_;
  gpt::EngineAccess access_;
  std::vector<std::int32_t> x_, y_;
};

void run(const Options& options) {
  const ddp::World world = ddp::init({.device = options.device});
  Bench bench(world, options);
  bench.block(true);  // warm up
  bench.block(false);
  std::vector<double> with, without, exposed;
  for (int round = 0; round < options.rounds; ++round) {
    const bool first = round % 2 == 0;  // neither is always the later one
    const double a = bench.block(first);
    const double b = bench.block(!first);
    with.push_back(first ? a : b);
    without.push_back(first ? b : a);
    exposed.push_back(with.back() - without.back());
  }
  if (world.rank() != 0) return;
  std::vector<double> sorted = exposed;
  std::sort(sorted.begin(), sorted.end());
  const double ms = median(with);
  const nlohmann::ordered_json line = {
      {"benchmark", "step"},
      {"model", options.model},
      {"precision", options.precision},
      {"world", world.size()},
      {"device", ddp::name(world.device())},
      {"backend", bench.backend()},
      {"stage", options.stage},
      {"batch", options.batch},
      {"bucket_mb", options.bucket_mb},
      {"block", options.block},
      {"rounds", options.rounds},
      {"ms", ms},
      {"ms_without_reduction", median(without)},
      {"exposed_ms", median(exposed)},
      {"exposed_ms_least", sorted.front()},
      {"exposed_ms_most", sorted.back()},
      {"tokens_per_s", 1000.0 * bench.tokens() / ms}};
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_step: %s\n", error.what());
    return 1;
  }
  return 0;
}
