#include "benchmarks/gpt_ops/checks.h"

#include <cmath>
#include <cstdio>

namespace bench {

void Checker::report(bool ok, const std::string& what, double value,
                     double limit) {
  ++checks_;
  if (ok) return;
  ++failures_;
  std::printf("FAILED %s: %s: difference %.3g, limit %.3g\n", label_.c_str(),
              what.c_str(), value, limit);
}

void Checker::near(const std::string& what, const Values& got,
                   const Values& want, double tolerance) {
  double largest = 1e-30, difference = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(want[i]));
    const double d = std::abs(got[i] - want[i]);
    // NaN compares false: it must win here.
    if (!(d <= difference)) difference = d;
  }
  const double relative = difference / largest;
  report(got.size() == want.size() && relative <= tolerance, what, relative,
         tolerance);
}

void Checker::near(const std::string& what, const Values& got,
                   const Values& want) {
  // bf16 keeps 8 bits; a result passes through at most three roundings.
  near(what, got, want, dtype == ddp::DType::kBFloat16 ? 1.5e-2 : 2e-5);
}

void Checker::same_bits(const std::string& what, const DeviceTensor& a,
                        const DeviceTensor& b) {
  report(a.bytes() == b.bytes(), what + " repeats bit for bit", 1, 0);
}

Values Checker::random(std::int64_t numel, double scale) {
  std::normal_distribution<float> normal(0, static_cast<float>(scale));
  Values values(static_cast<std::size_t>(numel));
  for (double& value : values) {
    const float x = normal(engine_);
    value =
        dtype == ddp::DType::kBFloat16 ? ddp::to_float(ddp::to_bfloat16(x)) : x;
  }
  return values;
}

Values Checker::random_tokens(std::int64_t numel, std::int64_t below) {
  std::uniform_int_distribution<std::int64_t> uniform(0, below - 1);
  Values values(static_cast<std::size_t>(numel));
  for (double& value : values) value = static_cast<double>(uniform(engine_));
  return values;
}

int run_checks(ddp::StreamView stream) {
  struct Variant {
    std::string name;
    gpt::CudaOpsOptions options;
  };
  const Variant variants[] = {
      {"default", {}},
      {"flash, nothing fused",
       {.attention = gpt::AttentionKind::kFlash, .fuse_gelu = false}},
      {"simple, tuned, bias gradient fused",
       {.attention = gpt::AttentionKind::kSimple,
        .deterministic_attention = true,
        .tune_products = true,
        .fuse_bias_gradient = true}}};
  int failures = 0, checks = 0;
  for (const ddp::DType dtype : {ddp::DType::kFloat32, ddp::DType::kBFloat16}) {
    for (const Variant& variant : variants) {
      const auto ops = gpt::make_cuda_ops(dtype, stream, variant.options);
      Checker checker(*ops, dtype,
                      std::string(name(dtype)) + ", " + variant.name);
      check_embedding(checker);
      check_layernorm(checker);
      check_linear(checker);
      check_head_and_loss(checker);
      check_attention(checker);
      failures += checker.failures();
      checks += checker.checks();
    }
  }
  std::printf("%d checks, %d failed\n", checks, failures);
  return failures;
}

}  // namespace bench
