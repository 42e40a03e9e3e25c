#include "benchmarks/gpt_ops/timings.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "examples/gpt/ops/cuda/cuda_ops.h"
#include "kernels/core/half.h"
#include "libddp/device/buffer.h"
#include "libddp/device/event.h"

namespace bench {
namespace {

using ddp::DType;
using ddp::TensorView;
using gpt::Ops;

constexpr int kWarmups = 3;
constexpr int kRuns = 10;

/// One operation of a step.
struct Operation {
  std::string name;
  int count;  // in a step
  std::function<void(Ops&)> run;
  double operations = 0;  // floating-point, if a product or attention
  double bytes = 0;       // else
};

/// The tensors of one layer, head and embedding, all bf16 unless said. Values
/// are normal, since a GPU runs faster on zeros; tokens differ as much as
/// they can.
struct Tensors {
  Tensors(ddp::StreamView stream, const TimingOptions& o)
      : stream_(stream),
        rows(std::int64_t{o.batch} * o.sequence),
        width(std::int64_t{o.heads} * o.head_size),
        padded(o.padded_vocabulary),
        vocabulary(o.vocabulary) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<std::int32_t>(i * 7919 %
                                         static_cast<std::size_t>(vocabulary));
    tokens = make(rows, DType::kInt32);
    ddp::copy_bytes(tokens.data, ids.data(), tokens.bytes(), stream);
    ddp::synchronize(stream);
  }

  TensorView make(std::int64_t numel, DType dtype = DType::kBFloat16) {
    buffers_.push_back(ddp::Buffer::allocate(
        static_cast<std::size_t>(numel) * ddp::size_of(dtype), stream_.device));
    const TensorView view = buffers_.back().view(0, numel, dtype);
    if (dtype == DType::kBFloat16)
      fill_normal(view);
    else
      ddp::zero_bytes(view.data, view.bytes(), stream_);
    return view;
  }

 private:
  /// A million normal values of small spread, repeated by doubling. With
  /// weights of 0.02 products keep the size of their input.
  void fill_normal(TensorView view) {
    std::normal_distribution<float> normal(0, 0.02f);
    std::vector<ddp::bfloat16> values(
        static_cast<std::size_t>(std::min(view.numel, std::int64_t{1} << 20)));
    for (ddp::bfloat16& value : values)
      value = ddp::to_bfloat16(normal(engine_));
    std::size_t filled = values.size() * sizeof values[0];
    ddp::copy_bytes(view.data, values.data(), filled, stream_);
    ddp::synchronize(stream_);
    while (filled < view.bytes()) {
      const std::size_t bytes = std::min(filled, view.bytes() - filled);
      ddp::copy_bytes(view.as<char>() + filled, view.data, bytes, stream_);
      filled += bytes;
    }
  }

  ddp::StreamView stream_;
  std::mt19937 engine_{1};
  std::vector<ddp::Buffer> buffers_;

 public:
  const std::int64_t rows, width, padded, vocabulary;
  TensorView tokens;
  TensorView x = make(rows * width), y = make(rows * width),
             z = make(rows * width), qkv = make(rows * 3 * width),
             dqkv = make(rows * 3 * width), wide = make(rows * 4 * width),
             wide2 = make(rows * 4 * width), logits = make(rows * padded);
  TensorView weight = make(4 * width * width), bias = make(4 * width),
             table = make(vocabulary * width);
  TensorView mean = make(rows, DType::kFloat32),
             rstd = make(rows, DType::kFloat32),
             losses = make(rows, DType::kFloat32),
             saved = make(rows * width, DType::kFloat32),
             grad = make(vocabulary * width, DType::kFloat32),
             bias_grad = make(4 * width, DType::kFloat32),
             position_grad = make(rows * width, DType::kFloat32);
};

std::vector<Operation> linear_operations(Tensors& t, int layers) {
  struct Layer {
    const char* name;
    TensorView in, out;
    std::int64_t columns_in, columns_out;
    bool gelu_after, gelu_before;
  };
  const std::int64_t w = t.width;
  const Layer linear[] = {{"qkv", t.x, t.qkv, w, 3 * w, false, false},
                          {"projection", t.x, t.y, w, w, false, false},
                          {"up", t.x, t.wide, w, 4 * w, true, false},
                          {"down", t.wide, t.x, 4 * w, w, false, true}};
  std::vector<Operation> list;
  for (const Layer& layer : linear) {
    const double flops = 2.0 * static_cast<double>(t.rows) *
                         static_cast<double>(layer.columns_in) *
                         static_cast<double>(layer.columns_out);
    const std::string name = layer.name;
    list.push_back({"linear " + name + " forward", layers,
                    [&t, layer](Ops& ops) {
                      ops.linear_forward(
                          layer.out, layer.in, t.weight, t.bias,
                          layer.gelu_after ? t.wide2 : TensorView{}, t.rows,
                          layer.columns_in, layer.columns_out);
                    },
                    flops});
    list.push_back({"linear " + name + " weight", layers,
                    [&t, layer](Ops& ops) {
                      ops.linear_backward_weight(
                          {t.grad, false}, {t.bias_grad, false}, layer.out,
                          layer.in, t.rows, layer.columns_in,
                          layer.columns_out);
                    },
                    flops});
    list.push_back({"linear " + name + " input", layers,
                    [&t, layer](Ops& ops) {
                      ops.linear_backward_input(
                          layer.in, layer.out, t.weight,
                          layer.gelu_before ? t.wide2 : TensorView{}, t.rows,
                          layer.columns_in, layer.columns_out);
                    },
                    flops});
  }
  return list;
}

std::vector<Operation> attention_operations(Tensors& t,
                                            const TimingOptions& o) {
  const gpt::AttentionShape shape{o.batch, o.sequence, o.heads, o.head_size};
  // One product over the half of the square below the diagonal.
  const double product =
      static_cast<double>(t.rows) * static_cast<double>(t.width) * o.sequence;
  return {{"attention forward", o.layers,
           [&t, shape](Ops& ops) {
             ops.attention_forward(t.x, t.saved, t.qkv, shape);
           },
           2 * product},
          {"attention backward", o.layers,
           [&t, shape](Ops& ops) {
             ops.attention_backward(t.dqkv, t.y, t.x, t.saved, t.qkv, shape);
           },
           5 * product}};
}

std::vector<Operation> norm_operations(Tensors& t, const TimingOptions& o) {
  const double matrix = 2.0 * static_cast<double>(t.rows * t.width);
  return {
      {"layernorm forward", 1,
       [&t](Ops& ops) {
         ops.layernorm_forward(t.y, t.mean, t.rstd, t.x, t.weight, t.bias,
                               t.rows, t.width);
       },
       0, 2 * matrix},
      {"residual layernorm forward", 2 * o.layers,
       [&t](Ops& ops) {
         ops.residual_layernorm_forward(t.qkv, t.y, t.mean, t.rstd, t.x, t.z,
                                        t.weight, t.bias, t.rows, t.width);
       },
       0, 4 * matrix},
      {"layernorm backward", 2 * o.layers + 1,
       [&t](Ops& ops) {
         ops.layernorm_backward(t.z, {t.grad, false}, {t.bias_grad, false}, t.y,
                                t.x, t.weight, t.mean, t.rstd, t.rows, t.width);
       },
       0, 4 * matrix},
      {"add", 0, [&t](Ops& ops) { ops.add(t.z, t.x, t.y); }, 0, 3 * matrix}};
}

std::vector<Operation> end_operations(Tensors& t, const TimingOptions& o) {
  const double matrix = 2.0 * static_cast<double>(t.rows * t.width);
  const double logits = 2.0 * static_cast<double>(t.rows * t.padded);
  const double head = 2.0 * static_cast<double>(t.rows) *
                      static_cast<double>(t.width) *
                      static_cast<double>(t.vocabulary);
  return {{"embedding forward", 1,
           [&t, o](Ops& ops) {
             ops.embedding_forward(t.x, t.tokens, t.table, t.table, t.rows,
                                   o.sequence, t.width);
           },
           0, 2 * matrix},
          {"embedding backward", 1,
           [&t, o](Ops& ops) {
             ops.embedding_backward({t.grad, true}, {t.position_grad, false},
                                    t.x, t.tokens, t.rows, o.sequence, t.width,
                                    t.vocabulary);
           },
           0, 2 * matrix},
          {"head forward", 1,
           [&t](Ops& ops) {
             ops.head_forward(t.logits, t.x, t.table, t.rows, t.width,
                              t.vocabulary, t.padded);
           },
           head},
          {"cross entropy", 1,
           [&t](Ops& ops) {
             ops.cross_entropy(t.losses, t.logits, t.tokens, t.rows,
                               t.vocabulary, t.padded, 1e-4f, true);
           },
           0, 2 * logits},
          {"head backward", 1,
           [&t](Ops& ops) {
             ops.head_backward(t.x, {t.grad, false}, t.logits, t.y, t.table,
                               t.rows, t.width, t.vocabulary, t.padded);
           },
           2 * head},
          {"mean loss", 1,
           [&t](Ops& ops) {
             ops.mean_loss(t.mean.as<float>(), t.losses, 1, false);
           },
           0, 4.0 * static_cast<double>(t.rows)}};
}

double median_ms(Ops& ops, const Operation& operation) {
  const ddp::StreamView stream = ops.stream();
  for (int i = 0; i < kWarmups; ++i) operation.run(ops);
  std::vector<float> times;
  ddp::Event start(stream.device, true), end(stream.device, true);
  for (int i = 0; i < kRuns; ++i) {
    start.record(stream);
    operation.run(ops);
    end.record(stream);
    end.synchronize();
    times.push_back(ddp::Event::elapsed_ms(start, end));
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

struct Way {
  const char* name;
  std::unique_ptr<Ops> ops;
  double step_ms = 0;
};

void print_row(const Operation& operation, const std::vector<Way>& ways,
               const std::vector<double>& ms, bool json) {
  const bool is_product = operation.operations > 0;
  const double work =
      is_product ? operation.operations / 1e9 : operation.bytes / 1e6;
  const char* const unit = is_product ? "TFLOP/s" : "GB/s";
  if (!json) std::printf("%-28s %4d", operation.name.c_str(), operation.count);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (json)
      std::printf(
          "{\"operation\": \"%s\", \"way\": \"%s\", \"count\": %d, "
          "\"ms\": %.4f, \"rate\": %.1f, \"unit\": \"%s\"}\n",
          operation.name.c_str(), ways[i].name, operation.count, ms[i],
          work / ms[i], unit);
    else
      std::printf("  %8.4f %6.0f", ms[i], work / ms[i]);
  }
  if (!json) std::printf("  %s\n", unit);
}

}  // namespace

void run_timings(ddp::StreamView stream, const TimingOptions& options) {
  std::vector<Way> ways;
  ways.push_back({"default", gpt::make_cuda_ops(DType::kBFloat16, stream,
                                                gpt::CudaOpsOptions{})});
  ways.push_back({"tuned", gpt::make_cuda_ops(DType::kBFloat16, stream,
                                              {.tune_products = true})});
  ways.push_back(
      {"plain", gpt::make_cuda_ops(DType::kBFloat16, stream,
                                   {.attention = gpt::AttentionKind::kFlash,
                                    .fuse_gelu = false,
                                    .fuse_bias_gradient = true})});
  Tensors tensors(stream, options);
  if (!options.json) {
    std::printf("batch %d x %d, bf16\n%-28s %4s", options.batch,
                options.sequence, "operation", "x");
    for (const Way& way : ways)
      std::printf("  %8s %6s", way.name,
                  std::string(gpt::attention_name(*way.ops)).c_str());
    std::printf("\n");
  }
  std::vector<Operation> all;
  for (auto&& list :
       {end_operations(tensors, options), norm_operations(tensors, options),
        linear_operations(tensors, options.layers),
        attention_operations(tensors, options)})
    all.insert(all.end(), list.begin(), list.end());
  for (const Operation& operation : all) {
    std::vector<double> ms;
    for (Way& way : ways) {
      ms.push_back(median_ms(*way.ops, operation));
      way.step_ms += operation.count * ms.back();
    }
    print_row(operation, ways, ms, options.json);
  }
  for (const Way& way : ways)
    std::printf(options.json
                    ? "{\"operation\": \"step\", \"way\": \"%s\", \"ms\": "
                      "%.3f, \"tokens_per_s\": %.0f}\n"
                    : "step, %s: %.2f ms, %.0f tokens/s on one GPU\n",
                way.name, way.step_ms,
                static_cast<double>(tensors.rows) / way.step_ms * 1e3);
}

}  // namespace bench
