// The kernels of every instruction set that this machine has, beside each
// other: ops are tested with the fastest alone.
#include "examples/gpt/ops/cpu/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "examples/gpt/model/random.h"

namespace gpt {
namespace {

using Floats = std::vector<float>;

Floats random_floats(std::int64_t count, std::uint64_t stream) {
  Floats values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(
        static_cast<float>(normal(17, stream, static_cast<std::uint64_t>(i))));
  return values;
}

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kWidth = 43;  // a multiple of no register
constexpr std::int64_t kSequence = 41;
constexpr std::int64_t kHead = 11;

/// Results of all kernels, one after the other.
Floats run_all(const Kernels& table) {
  const std::int64_t count = kRows * kWidth;
  const Floats a = random_floats(count, 1);
  const Floats b = random_floats(count, 2);
  const Floats w = random_floats(kWidth, 3);
  Floats x = random_floats(count, 4);
  Floats all;
  const auto keep = [&](const Floats& values) {
    all.insert(all.end(), values.begin(), values.end());
  };
  Floats residual(count), out(count), mean(kRows), rstd(kRows);
  table.layernorm(residual.data(), out.data(), mean.data(), rstd.data(),
                  a.data(), b.data(), w.data(), w.data(), kRows, kWidth);
  keep(residual), keep(out), keep(mean), keep(rstd);
  Floats dw(kWidth), db(kWidth);
  table.layernorm_backward(x.data(), dw.data(), db.data(), b.data(),
                           residual.data(), w.data(), mean.data(), rstd.data(),
                           kRows, kWidth);
  keep(x), keep(dw), keep(db);
  table.gelu(out.data(), a.data(), count);
  keep(out);
  table.gelu_backward(x.data(), a.data(), count);
  keep(x);
  table.add(out.data(), a.data(), b.data(), count);
  keep(out);
  table.repeat_row(out.data(), w.data(), kRows, kWidth);
  keep(out);
  table.column_sums(dw.data(), a.data(), kRows, kWidth);
  keep(dw);
  Floats logits = a;
  keep({table.cross_entropy(logits.data(), 7, kWidth, 0.5f, true)});
  keep(logits);

  const Floats qkv = random_floats(kSequence * 3 * kHead, 5);
  const Floats dout = random_floats(kSequence * kHead, 6);
  Floats attended(kSequence * kHead), sums(kSequence), dqkv(qkv.size());
  Floats scratch(table.attention_scratch(kSequence, kHead, true));
  const AttentionHead head{.sequence = kSequence,
                           .head_size = kHead,
                           .qkv_stride = 3 * kHead,
                           .out_stride = kHead,
                           .q = qkv.data(),
                           .k = qkv.data() + kHead,
                           .v = qkv.data() + 2 * kHead,
                           .out = attended.data(),
                           .log_sums = sums.data(),
                           .dout = dout.data(),
                           .dq = dqkv.data(),
                           .dk = dqkv.data() + kHead,
                           .dv = dqkv.data() + 2 * kHead};
  table.attention(head, scratch.data());
  table.attention_backward(head, scratch.data());
  keep(attended), keep(sums), keep(dqkv);
  return all;
}

TEST(Kernels, EveryInstructionSetGivesTheSameNumbers) {
  const auto tables = runnable_kernels();
  EXPECT_STREQ(tables.back()->name, "baseline");
  const Floats expected = run_all(*tables.front());
  for (const Kernels* table : tables) {
    const Floats actual = run_all(*table);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i],
                  1e-5 * std::max(1.0f, std::abs(expected[i])))
          << table->name << " element " << i;
  }
}

TEST(Kernels, ANanReachesTheLossAndTheAttention) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Kernels* table : runnable_kernels()) {
    Floats logits = random_floats(kWidth, 1);
    logits[20] = nan;
    EXPECT_TRUE(
        std::isnan(table->cross_entropy(logits.data(), 7, kWidth, 1, true)))
        << table->name;
    EXPECT_TRUE(std::isnan(logits[3])) << table->name;

    Floats qkv = random_floats(kSequence * 3 * kHead, 5);
    qkv[4 * 3 * kHead + kHead] = nan;  // the key of token 4
    Floats out(kSequence * kHead), sums(kSequence);
    Floats scratch(table->attention_scratch(kSequence, kHead, false));
    table->attention({.sequence = kSequence,
                      .head_size = kHead,
                      .qkv_stride = 3 * kHead,
                      .out_stride = kHead,
                      .q = qkv.data(),
                      .k = qkv.data() + kHead,
                      .v = qkv.data() + 2 * kHead,
                      .out = out.data(),
                      .log_sums = sums.data()},
                     scratch.data());
    for (std::int64_t t = 0; t < kSequence; ++t)
      EXPECT_EQ(std::isnan(out[t * kHead]), t >= 4)
          << table->name << " token " << t;
  }
}

TEST(Kernels, LargeAndEqualLogitsStayFinite) {
  for (const Kernels* table : runnable_kernels()) {
    Floats logits(kWidth, 1e30f);
    EXPECT_NEAR(table->cross_entropy(logits.data(), 0, kWidth, 1, true),
                std::log(static_cast<float>(kWidth)), 1e-5)
        << table->name;
    EXPECT_NEAR(logits[1], 1.0f / kWidth, 1e-7) << table->name;
  }
}

}  // namespace
}  // namespace gpt
