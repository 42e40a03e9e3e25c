#include "examples/gpt/train/trainer.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "examples/gpt/model/parameters.h"
#include "examples/gpt/train/evaluate.h"
#include "examples/gpt/train/generate.h"
#include "examples/gpt/train/weights_file.h"

namespace gpt {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

ddp::Schedule schedule_of(const TrainOptions& options) {
  ddp::Schedule schedule{
      .decay = ddp::Decay::kCosine,
      .total_steps = options.steps,
      .warmup_steps = options.warmup,
      .warmup_start =
          options.warmup > 0 ? 1.0 / static_cast<double>(options.warmup) : 0,
      .final_factor = options.min_lr_factor};
  schedule.check();
  return schedule;
}

std::unique_ptr<Ops> make_ops(ddp::DType dtype, ddp::StreamView stream) {
  return stream.device.is_cpu() ? make_cpu_ops(dtype)
                                : make_cuda_ops(dtype, stream);
}

/// Two groups: matrices are decayed, biases and norms are not.
ddp::DataParallelOptions engine_options(const TrainOptions& options,
                                        const GptConfig& config) {
  const bool half = options.precision == ddp::DType::kBFloat16;
  ddp::AdamW adam{.lr = static_cast<float>(options.lr),
                  .beta1 = static_cast<float>(options.beta1),
                  .beta2 = static_cast<float>(options.beta2),
                  .weight_decay = static_cast<float>(options.weight_decay)};
  ddp::ParameterGroup plain{.parameters = {}, .optimizer = adam};
  std::get<ddp::AdamW>(plain.optimizer).weight_decay = 0;
  for (const ddp::ParameterSpec& each : parameters(config, options.precision))
    if (!is_decayed(each)) plain.parameters.push_back(each.name);
  ddp::DataParallelOptions engine;
  engine.precision = half ? ddp::Precision::bf16() : ddp::Precision::fp32();
  engine.optimizer = adam;
  engine.groups = {plain};
  engine.clip_norm = options.clip;
  engine.bucket_bytes = static_cast<std::size_t>(options.bucket_mb * 1e6);
  engine.drift_check_interval = static_cast<int>(options.drift_check);
  engine.backend = options.backend;
  return engine;
}

StepLog::Settings log_settings(const TrainOptions& options, bool writes) {
  return {.writes = writes,
          .steps = options.steps,
          .tokens_per_step =
              static_cast<double>(options.global_batch * options.sequence),
          .print_every = options.print_every,
          .json_path = options.log};
}

}  // namespace

Trainer::Trainer(const ddp::World& world, TrainOptions options,
                 GptConfig config)
    : world_(world),
      options_(std::move(options)),
      config_(std::move(config)),
      schedule_(schedule_of(options_)),
      data_(options_, config_, world_),
      stream_(world_.device()),
      model_(config_, options_.batch, options_.sequence, options_.precision,
             make_ops(options_.precision, stream_)),
      uploader_(model_, options_.batch * options_.sequence),
      engine_(world_, parameters(config_, options_.precision),
              engine_options(options_, config_)),
      access_(engine_),
      log_(log_settings(options_, is_first())) {}

void Trainer::run(const volatile int& stop) {
  fill_weights();
  if (is_first()) {
    std::printf("%s: %.1f M parameters, %.1f MB of activations a rank\n",
                config_.name.c_str(),
                static_cast<double>(config_.parameter_elements()) / 1e6,
                static_cast<double>(model_.activation_bytes()) / 1e6);
    std::printf(
        "%lld updates of %lld sequences of %lld tokens; %lld tokens to train "
        "on, %lld held out\n",
        static_cast<long long>(options_.steps),
        static_cast<long long>(options_.global_batch),
        static_cast<long long>(options_.sequence),
        static_cast<long long>(data_.train().tokens()),
        static_cast<long long>(data_.held_out().tokens()));
    std::fflush(stdout);
  }
  train(stop);
  const double held_out = held_out_loss();
  print_sample();
  if (!options_.out.empty()) write_weights(options_.out, engine_, is_first());
  print_summary(held_out);
}

void Trainer::fill_weights() {
  if (options_.init.empty()) {
    engine_.initialize([&](int p, std::span<float> values) {
      initialize(config_, p, options_.seed, values);
    });
    return;
  }
  // Every rank opens the file, so a bad one is an error on all of them.
  const ddp::SafetensorsFile file(options_.init);
  engine_.initialize([&](int p, std::span<float> values) {
    read_weight(file, options_.init, engine_.parameter(p), values);
  });
}

void Trainer::train(const volatile int& stop) {
  Clock::time_point start = Clock::now();
  while (steps_done_ < options_.steps && !engine_.should_stop()) {
    step(steps_done_, stop != 0);
    log_.add_time(steps_done_, ms_since(start));
    start = Clock::now();
    ++steps_done_;
    for (const ddp::StepReport& report : engine_.poll_reports())
      log_.add(report);
    if (options_.val_every > 0 && steps_done_ % options_.val_every == 0 &&
        steps_done_ < options_.steps) {
      held_out_loss();
      start = Clock::now();  // evaluation is no part of an update
    }
  }
  for (const ddp::StepReport& report : engine_.wait_reports()) log_.add(report);
}

void Trainer::step(std::int64_t number, bool request_stop) {
  const BatchShape shape{options_.batch, options_.sequence};
  for (std::int64_t micro = 0; micro < options_.accumulation; ++micro) {
    const ddp::Batch batch = data_.next();
    uploader_.upload(batch.x.get(), batch.y.get(), shape.rows());
    model_.forward(access_, shape,
                   {.loss_count = static_cast<double>(shape.rows() *
                                                      options_.accumulation),
                    .accumulate_loss = micro > 0,
                    .backward = true});
    engine_.set_gradient_sync(micro + 1 == options_.accumulation);
    model_.backward(access_);
  }
  engine_.step({.device_loss = model_.loss(),
                .lr_factor = schedule_.factor(number),
                .request_stop = request_stop},
               stream_);
}

double Trainer::held_out_loss() {
  const double loss =
      evaluate(model_, uploader_, access_, data_.held_out(), options_.batch,
               options_.val_batches, world_, engine_);
  if (is_first()) {
    std::printf("held-out loss after %lld updates: %.4f nats a token\n",
                static_cast<long long>(steps_done_), loss);
    std::fflush(stdout);
  }
  return loss;
}

void Trainer::print_sample() {
  if (options_.sample == 0 || !is_first()) return;
  const std::int32_t start =
      config_.vocabulary == 256
          ? '\n'
          : static_cast<std::int32_t>(config_.vocabulary - 1);
  const auto text = generate(model_, uploader_, access_, {start},
                             {.tokens = options_.sample,
                              .temperature = options_.temperature,
                              .seed = options_.seed,
                              .sequence = options_.sequence});
  std::printf("--- sample ---%s\n--------------\n",
              to_text(text, config_).c_str());
}

void Trainer::print_summary(double held_out) {
  if (!is_first()) return;
  const nlohmann::ordered_json summary = {
      {"world", world_.size()},
      {"device", world_.device().is_cpu() ? "cpu" : "cuda"},
      {"steps", steps_done_},
      {"final_train_loss", log_.last_loss()},
      {"final_val_loss", held_out},
      {"tokens_per_s", log_.tokens_per_s()},
      {"exposed_ms", log_.median_exposed_ms()},
      {"ms", log_.median_ms()},
      {"model", config_.name},
      {"precision",
       options_.precision == ddp::DType::kBFloat16 ? "bf16" : "fp32"},
      {"global_batch", options_.global_batch},
      {"parameters", config_.parameter_elements()}};
  std::printf("%s\n", summary.dump().c_str());
  std::fflush(stdout);
}

}  // namespace gpt
