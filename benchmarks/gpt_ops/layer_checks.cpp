#include <cmath>

#include "benchmarks/gpt_ops/checks.h"

namespace bench {
namespace {

using ddp::GradientTarget;

Values sum(const Values& a, const Values& b) {
  Values out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] + b[i];
  return out;
}

Values twice(const Values& a) { return sum(a, a); }

/// `values` as bf16 would hold them, in a check of bf16.
Values rounded(const Checker& checker, Values values) {
  if (checker.dtype == ddp::DType::kBFloat16)
    for (double& v : values)
      v = ddp::to_float(ddp::to_bfloat16(static_cast<float>(v)));
  return values;
}

}  // namespace

void check_embedding(Checker& checker) {
  struct Shape {
    std::int64_t batch, sequence, width, vocabulary;
  };
  // The second has runs of one token over many chunks, the third odd rows.
  for (const auto& [batch, sequence, width, vocabulary] :
       {Shape{3, 50, 192, 300}, Shape{4, 64, 96, 2}, Shape{2, 7, 20, 11},
        Shape{2, 40, 1280, 1}}) {
    const std::int64_t rows = batch * sequence;
    const std::int64_t positions = sequence + 3;
    const Values tokens = checker.random_tokens(rows, vocabulary);
    const Values table = checker.random(vocabulary * width);
    const Values place = checker.random(positions * width);
    const Values dout = checker.random(rows * width);
    Values out(dout.size()), dtable(table.size()), dplace(place.size());
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t c = 0; c < width; ++c) {
        const auto i = static_cast<std::size_t>(row * width + c);
        const auto t = static_cast<std::size_t>(
            static_cast<std::int64_t>(tokens[static_cast<std::size_t>(row)]) *
                width +
            c);
        const auto p = static_cast<std::size_t>(row % sequence * width + c);
        out[i] = table[t] + place[p];
        dtable[t] += dout[i];
        dplace[p] += dout[i];
      }
    const DeviceTensor device_tokens = checker.upload_ints(tokens);
    const DeviceTensor device_out = checker.empty(rows * width);
    checker.ops.embedding_forward(device_out, device_tokens,
                                  checker.upload(table), checker.upload(place),
                                  rows, sequence, width);
    checker.near("embedding_forward", device_out.values(), out);
    const DeviceTensor device_dout = checker.upload(dout);
    DeviceTensor grads = checker.empty_floats(vocabulary * width);
    DeviceTensor place_grads = checker.empty_floats(positions * width);
    const auto backward = [&](DeviceTensor& g, DeviceTensor& p,
                              bool accumulate) {
      checker.ops.embedding_backward({g, accumulate}, {p, accumulate},
                                     device_dout, device_tokens, rows, sequence,
                                     width, vocabulary);
    };
    backward(grads, place_grads, false);
    checker.near("embedding_backward tokens", grads.values(), dtable, 1e-5);
    checker.near("embedding_backward positions", place_grads.values(), dplace,
                 1e-5);
    DeviceTensor again = checker.empty_floats(vocabulary * width);
    backward(again, place_grads, false);
    checker.same_bits("embedding_backward", grads, again);
    backward(grads, place_grads, true);
    checker.near("embedding_backward added", grads.values(), twice(dtable),
                 1e-5);
    checker.near("embedding_backward positions added", place_grads.values(),
                 twice(dplace), 1e-5);
  }
}

void check_layernorm(Checker& checker) {
  for (const std::int64_t width : {16, 192, 768, 1024, 1600, 4096, 50}) {
    const std::int64_t rows = 77;
    const Values a = checker.random(rows * width);
    const Values b = checker.random(rows * width);
    const Values weight = checker.random(width);
    const Values bias = checker.random(width);
    const Values dout = checker.random(rows * width);
    const std::string label = "width " + std::to_string(width);
    const DeviceTensor device_a = checker.upload(a);
    const DeviceTensor device_weight = checker.upload(weight);
    const DeviceTensor device_bias = checker.upload(bias);
    const DeviceTensor out = checker.empty(rows * width);
    const DeviceTensor residual = checker.empty(rows * width);
    const DeviceTensor mean = checker.empty_floats(rows);
    const DeviceTensor rstd = checker.empty_floats(rows);

    checker.ops.layernorm_forward(out, mean, rstd, device_a, device_weight,
                                  device_bias, rows, width);
    const Layernorm plain = layernorm(a, weight, bias, width);
    checker.near("layernorm_forward " + label, out.values(), plain.out);
    checker.near("mean " + label, mean.values(), plain.mean, 1e-5);
    checker.near("rstd " + label, rstd.values(), plain.rstd, 1e-5);

    checker.ops.residual_layernorm_forward(residual, out, mean, rstd, device_a,
                                           checker.upload(b), device_weight,
                                           device_bias, rows, width);
    const Values stream = rounded(checker, sum(a, b));
    const Layernorm want = layernorm(stream, weight, bias, width);
    checker.near("residual " + label, residual.values(), stream);
    checker.near("residual_layernorm " + label, out.values(), want.out);

    const LayernormGradients gradients =
        layernorm_gradients(dout, stream, weight, width);
    const DeviceTensor device_dout = checker.upload(dout);
    DeviceTensor dweight = checker.empty_floats(width);
    DeviceTensor dbias = checker.empty_floats(width);
    const auto backward = [&](const DeviceTensor& din, bool accumulate) {
      checker.ops.layernorm_backward(din, {dweight, accumulate},
                                     {dbias, accumulate}, device_dout, residual,
                                     device_weight, mean, rstd, rows, width);
    };
    const DeviceTensor din = checker.upload(a), again = checker.upload(a);
    backward(din, false);
    checker.near("layernorm_backward " + label, din.values(),
                 sum(a, gradients.in));
    checker.near("weight gradient " + label, dweight.values(), gradients.weight,
                 1e-4);
    checker.near("bias gradient " + label, dbias.values(), gradients.bias,
                 1e-4);
    backward(again, true);
    checker.same_bits("layernorm_backward " + label, din, again);
    checker.near("weight gradient added " + label, dweight.values(),
                 twice(gradients.weight), 1e-4);
    checker.near("bias gradient added " + label, dbias.values(),
                 twice(gradients.bias), 1e-4);
    checker.ops.add(out, device_a, checker.upload(b));
    checker.near("add " + label, out.values(), sum(a, b));
  }
}

void check_linear(Checker& checker) {
  struct Shape {
    std::int64_t rows, in, out;
  };
  for (const auto& [rows, in, out] :
       {Shape{77, 192, 96}, Shape{130, 64, 256}, Shape{128, 256, 768}}) {
    const Values x = checker.random(rows * in);
    const Values weight = checker.random(in * out, 0.1);
    const Values bias = checker.random(out);
    const Values dout = checker.random(rows * out);
    const std::string label = ddp::concat("[", rows, ", ", in, "] to ", out);
    const DeviceTensor device_x = checker.upload(x);
    const DeviceTensor device_weight = checker.upload(weight);
    const DeviceTensor device_bias = checker.upload(bias);
    const DeviceTensor device_dout = checker.upload(dout);

    Values pre = product(x, weight, rows, out, in, false, false);
    for (std::size_t i = 0; i < pre.size(); ++i)
      pre[i] += bias[i % bias.size()];
    Values activated = pre;
    for (double& v : activated) v = gelu(v);
    const DeviceTensor y = checker.empty(rows * out);
    const DeviceTensor device_pre = checker.empty(rows * out);
    checker.ops.linear_forward(y, device_x, device_weight, device_bias, {},
                               rows, in, out);
    checker.near("linear_forward " + label, y.values(), pre);
    checker.ops.linear_forward(y, device_x, device_weight, device_bias,
                               device_pre, rows, in, out);
    checker.near("before gelu " + label, device_pre.values(), pre);
    checker.near("gelu " + label, y.values(), activated);

    Values din = product(dout, weight, rows, in, out, false, true);
    const DeviceTensor device_din = checker.empty(rows * in);
    checker.ops.linear_backward_input(device_din, device_dout, device_weight,
                                      {}, rows, in, out);
    checker.near("linear_backward_input " + label, device_din.values(), din);
    for (std::size_t i = 0; i < din.size(); ++i)
      din[i] *= gelu_derivative(x[i]);
    checker.ops.linear_backward_input(device_din, device_dout, device_weight,
                                      device_x, rows, in, out);
    checker.near("through gelu " + label, device_din.values(), din);

    const Values dweight = product(x, dout, in, out, rows, true, false);
    const Values dbias = column_sums(dout, out);
    for (const ddp::DType type :
         {ddp::DType::kFloat32, ddp::DType::kBFloat16}) {
      const double limit = type == ddp::DType::kFloat32 ? 1e-4 : 1.5e-2;
      const DeviceTensor w(in * out, type, checker.ops.stream());
      const DeviceTensor b(out, type, checker.ops.stream());
      // A product of fp32 values gives fp32 alone.
      if (checker.dtype == ddp::DType::kFloat32 && type != checker.dtype)
        continue;
      for (const bool accumulate : {false, true}) {
        checker.ops.linear_backward_weight({w, accumulate}, {b, accumulate},
                                           device_dout, device_x, rows, in,
                                           out);
        const std::string kind =
            ddp::concat(name(type), accumulate ? " added " : " ", label);
        checker.near("weight gradient " + kind, w.values(),
                     accumulate ? twice(dweight) : dweight, limit);
        checker.near("bias gradient " + kind, b.values(),
                     accumulate ? twice(dbias) : dbias, limit);
      }
    }
  }
}

void check_head_and_loss(Checker& checker) {
  struct Shape {
    std::int64_t rows, width, vocabulary, padded;
  };
  for (const auto& [rows, width, vocabulary, padded] :
       {Shape{70, 64, 307, 320}, Shape{33, 192, 320, 320},
        Shape{16, 32, 257, 257}, Shape{5, 64, 20000, 20032}}) {
    const std::string label = "vocabulary " + std::to_string(vocabulary);
    const Values x = checker.random(rows * width);
    const Values table = checker.random(vocabulary * width, 0.2);
    const DeviceTensor device_x = checker.upload(x);
    const DeviceTensor device_table = checker.upload(table);
    const DeviceTensor logits = checker.empty(rows * padded);
    // An odd row length has no algorithm in bf16: only aligned ones count.
    if (padded % 8 == 0) {
      checker.ops.head_forward(logits, device_x, device_table, rows, width,
                               vocabulary, padded);
      const Values want =
          product(x, table, rows, vocabulary, width, false, true);
      const Values all = logits.values();
      Values got;
      for (std::int64_t row = 0; row < rows; ++row)
        got.insert(got.end(), all.begin() + row * padded,
                   all.begin() + row * padded + vocabulary);
      checker.near("head_forward " + label, got, want);
    }

    Values values = checker.random(rows * padded, 2);
    Values targets = checker.random_tokens(rows, vocabulary);
    targets[1] = -1;
    targets[2] = static_cast<double>(vocabulary - 1);
    const double scale = 0.25;
    const LossResult want =
        cross_entropy(values, targets, vocabulary, padded, scale);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t c = vocabulary; c < padded; ++c)
        values[static_cast<std::size_t>(row * padded + c)] = NAN;
    const DeviceTensor device_logits = checker.upload(values);
    const DeviceTensor device_targets = checker.upload_ints(targets);
    const DeviceTensor losses = checker.empty_floats(rows);
    for (const bool want_gradient : {false, true}) {
      checker.ops.cross_entropy(losses, device_logits, device_targets, rows,
                                vocabulary, padded, static_cast<float>(scale),
                                want_gradient);
      checker.near("losses " + label, losses.values(), want.losses, 1e-5);
    }
    checker.near("cross_entropy " + label, device_logits.values(),
                 want.gradient);
    const DeviceTensor mean(Values{10.0}, ddp::DType::kFloat32,
                            checker.ops.stream());
    double total = 10;
    for (const double loss : want.losses) total += loss / 7;
    checker.ops.mean_loss(mean.view().as<float>(), losses, 7, true);
    checker.near("mean_loss", mean.values(), {total}, 1e-5);

    if (padded % 8 != 0) continue;
    // Whatever lies past the vocabulary must not count.
    Values dlogits = checker.random(rows * padded);
    Values kept;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto first = dlogits.begin() + row * padded;
      kept.insert(kept.end(), first, first + vocabulary);
      std::fill(first + vocabulary, first + padded, NAN);
    }
    const DeviceTensor device_dlogits = checker.upload(dlogits);
    const DeviceTensor din = checker.empty(rows * width);
    const DeviceTensor dtable = checker.empty_floats(vocabulary * width);
    const Values want_table =
        product(kept, x, vocabulary, width, rows, true, false);
    for (const bool accumulate : {false, true}) {
      checker.ops.head_backward(din, {dtable, accumulate}, device_dlogits,
                                device_x, device_table, rows, width, vocabulary,
                                padded);
      checker.near("head_backward " + label, din.values(),
                   product(kept, table, rows, width, vocabulary, false, false));
      checker.near("table gradient " + label, dtable.values(),
                   accumulate ? twice(want_table) : want_table, 1e-4);
    }
  }
}

}  // namespace bench
