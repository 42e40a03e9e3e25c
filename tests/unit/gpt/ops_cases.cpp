// The claims that every Ops must meet.
#include <cmath>

#include "tests/unit/gpt/ops_suite.h"
#include "tests/unit/gpt/parameter_store.h"

namespace gpt {

using reference::Values;

namespace {

Values sum(const Values& a, const Values& b) {
  Values c(a);
  for (std::size_t i = 0; i < c.size(); ++i) c[i] += b[i];
  return c;
}

reference::Heads heads(const AttentionShape& s) {
  return {s.batch, s.sequence, s.heads, s.head_size};
}

}  // namespace

TEST_P(OpsTest, EmbeddingAddsTokenAndPosition) {
  const std::int64_t c = width();
  const auto numbers = random_tokens(rows());
  const TestTensor words = random(GetParam().vocabulary * c);
  const TestTensor places = random(shape().sequence * c);
  const TestTensor out = empty(rows() * c);
  const TestTensor token = tokens(numbers);
  ops_->embedding_forward(out.view, token.view, words.view, places.view, rows(),
                          shape().sequence, c);
  Values expected(rows() * c);
  for (std::int64_t row = 0; row < rows(); ++row)
    for (std::int64_t i = 0; i < c; ++i)
      expected[row * c + i] = words.values[numbers[row] * c + i] +
                              places.values[row % shape().sequence * c + i];
  expect_near(out, expected, "out");
}

TEST_P(OpsTest, EmbeddingBackwardSumsTheRowsOfEachTokenAndPosition) {
  const std::int64_t c = width();
  const std::int64_t positions = shape().sequence + 3;  // a longer table
  auto numbers = random_tokens(rows());
  numbers[0] = numbers[1] = numbers[2];  // certainly one token more than once
  const TestTensor token = tokens(numbers);
  const TestTensor dout = random(rows() * c);
  Values words(GetParam().vocabulary * c);
  Values places(positions * c);
  for (std::int64_t row = 0; row < rows(); ++row)
    for (std::int64_t i = 0; i < c; ++i) {
      words[numbers[row] * c + i] += dout.values[row * c + i];
      places[row % shape().sequence * c + i] += dout.values[row * c + i];
    }
  for (bool add_words : {false, true})
    for (bool add_places : {false, true}) {
      const TestTensor dwords = target(words.size(), add_words);
      const TestTensor dplaces = target(places.size(), add_places);
      ops_->embedding_backward(as_target(dwords, add_words),
                               as_target(dplaces, add_places), dout.view,
                               token.view, rows(), shape().sequence, c,
                               GetParam().vocabulary);
      expect_gradient(dwords, words, add_words, "token table");
      expect_gradient(dplaces, places, add_places, "position table");
    }
}

TEST_P(OpsTest, LayerNormForward) {
  const TestTensor in = random(rows() * width());
  const TestTensor weight = random(width());
  const TestTensor bias = random(width());
  const TestTensor out = empty(rows() * width());
  const TestTensor mean = empty(rows(), ddp::DType::kFloat32);
  const TestTensor rstd = empty(rows(), ddp::DType::kFloat32);
  ops_->layernorm_forward(out.view, mean.view, rstd.view, in.view, weight.view,
                          bias.view, rows(), width());
  const auto expected =
      reference::layernorm(in.values, weight.values, bias.values, rows());
  expect_near(out, expected.out, "out");
  expect_near(mean, expected.mean, "mean");
  expect_near(rstd, expected.rstd, "rstd");
}

TEST_P(OpsTest, ResidualLayerNormForwardAddsThenNormalises) {
  const TestTensor a = random(rows() * width());
  const TestTensor b = random(rows() * width());
  const TestTensor weight = random(width());
  const TestTensor bias = random(width());
  const TestTensor residual = empty(rows() * width());
  const TestTensor out = empty(rows() * width());
  const TestTensor mean = empty(rows(), ddp::DType::kFloat32);
  const TestTensor rstd = empty(rows(), ddp::DType::kFloat32);
  ops_->residual_layernorm_forward(residual.view, out.view, mean.view,
                                   rstd.view, a.view, b.view, weight.view,
                                   bias.view, rows(), width());
  const Values total = sum(a.values, b.values);
  const auto expected =
      reference::layernorm(total, weight.values, bias.values, rows());
  expect_near(residual, total, "residual");
  expect_near(out, expected.out, "out");
  expect_near(mean, expected.mean, "mean");
  expect_near(rstd, expected.rstd, "rstd");
}

TEST_P(OpsTest, AddAdds) {
  const TestTensor a = random(rows() * width());
  const TestTensor b = random(rows() * width());
  const TestTensor out = empty(rows() * width());
  ops_->add(out.view, a.view, b.view);
  expect_near(out, sum(a.values, b.values), "out");
}

TEST_P(OpsTest, LayerNormBackwardAddsToTheResidualStream) {
  const TestTensor in = random(rows() * width());
  const TestTensor weight = random(width());
  const TestTensor dout = random(rows() * width());
  const auto forward =
      reference::layernorm(in.values, weight.values, Values(width()), rows());
  const TestTensor mean = upload(forward.mean, ddp::DType::kFloat32);
  const TestTensor rstd = upload(forward.rstd, ddp::DType::kFloat32);
  const auto expected = reference::layernorm_backward(dout.values, in.values,
                                                      weight.values, rows());
  for (bool add : {false, true}) {
    const TestTensor din = random(rows() * width());
    const TestTensor dweight = target(width(), add);
    const TestTensor dbias = target(width(), add);
    ops_->layernorm_backward(
        din.view, as_target(dweight, add), as_target(dbias, add), dout.view,
        in.view, weight.view, mean.view, rstd.view, rows(), width());
    expect_near(din, sum(din.values, expected.in), "din");
    expect_gradient(dweight, expected.weight, add, "weight");
    expect_gradient(dbias, expected.bias, add, "bias");
  }
}

TEST_P(OpsTest, LinearForward) {
  const std::int64_t columns = 3 * width();
  const TestTensor in = random(rows() * width());
  const TestTensor weight = random(width() * columns, 0.1);
  const TestTensor bias = random(columns);
  const TestTensor out = empty(rows() * columns);
  ops_->linear_forward(out.view, in.view, weight.view, bias.view, {}, rows(),
                       width(), columns);
  expect_near(
      out,
      reference::linear(in.values, weight.values, bias.values, rows(), columns),
      "out");
}

TEST_P(OpsTest, LinearForwardWithGeluKeepsTheValuesBefore) {
  const std::int64_t columns = 4 * width();
  const TestTensor in = random(rows() * width());
  const TestTensor weight = random(width() * columns, 0.1);
  const TestTensor bias = random(columns);
  const TestTensor out = empty(rows() * columns);
  const TestTensor pre = empty(rows() * columns);
  ops_->linear_forward(out.view, in.view, weight.view, bias.view, pre.view,
                       rows(), width(), columns);
  const Values expected =
      reference::linear(in.values, weight.values, bias.values, rows(), columns);
  expect_near(pre, expected, "before GELU");
  expect_near(out, reference::gelu(expected), "out");
}

TEST_P(OpsTest, LinearBackwardWeight) {
  const std::int64_t columns = 3 * width();
  const TestTensor in = random(rows() * width());
  const TestTensor dout = random(rows() * columns);
  for (bool add : {false, true}) {
    const TestTensor dweight = target(width() * columns, add);
    const TestTensor dbias = target(columns, add);
    ops_->linear_backward_weight(as_target(dweight, add), as_target(dbias, add),
                                 dout.view, in.view, rows(), width(), columns);
    expect_gradient(dweight,
                    reference::transposed_times(in.values, dout.values, rows()),
                    add, "weight");
    expect_gradient(dbias, reference::column_sums(dout.values, rows()), add,
                    "bias");
  }
}

TEST_P(OpsTest, LinearBackwardInput) {
  const std::int64_t columns = 3 * width();
  const TestTensor weight = random(width() * columns, 0.1);
  const TestTensor dout = random(rows() * columns);
  const TestTensor din = empty(rows() * width());
  ops_->linear_backward_input(din.view, dout.view, weight.view, {}, rows(),
                              width(), columns);
  expect_near(
      din,
      reference::times_transposed(dout.values, weight.values, rows(), width()),
      "din");
}

TEST_P(OpsTest, LinearBackwardInputGoesThroughGelu) {
  const std::int64_t wide = 4 * width();
  const TestTensor weight = random(wide * width(), 0.1);
  const TestTensor dout = random(rows() * width());
  const TestTensor pre = random(rows() * wide);
  const TestTensor din = empty(rows() * wide);
  ops_->linear_backward_input(din.view, dout.view, weight.view, pre.view,
                              rows(), wide, width());
  const Values inside =
      reference::times_transposed(dout.values, weight.values, rows(), wide);
  expect_near(din, reference::gelu_backward(inside, pre.values), "din");
}

TEST_P(OpsTest, AttentionLooksBackOnly) {
  const TestTensor qkv = random(3 * rows() * width());
  const TestTensor out = empty(rows() * width());
  const TestTensor saved = bytes(ops_->attention_saved_bytes(shape()));
  ops_->attention_forward(out.view, saved.view, qkv.view, shape());
  expect_near(out, reference::attention(qkv.values, heads(shape())), "out");
}

TEST_P(OpsTest, AttentionBackward) {
  const TestTensor qkv = random(3 * rows() * width());
  const TestTensor dout = random(rows() * width());
  const TestTensor out = empty(rows() * width());
  const TestTensor dqkv = empty(3 * rows() * width());
  const TestTensor saved = bytes(ops_->attention_saved_bytes(shape()));
  ops_->attention_forward(out.view, saved.view, qkv.view, shape());
  ops_->attention_backward(dqkv.view, dout.view, out.view, saved.view, qkv.view,
                           shape());
  expect_near(
      dqkv,
      reference::attention_backward(dout.values, qkv.values, heads(shape())),
      "dqkv");
}

TEST_P(OpsTest, HeadForwardAndBackwardUseTheTokenTable) {
  const std::int64_t vocabulary = GetParam().vocabulary;
  const std::int64_t padded = (vocabulary + 127) / 128 * 128;
  const std::int64_t few = std::min<std::int64_t>(rows(), 48);
  const TestTensor in = random(few * width());
  const TestTensor table = random(vocabulary * width(), 0.1);
  const TestTensor logits = empty(few * padded);
  ops_->head_forward(logits.view, in.view, table.view, few, width(), vocabulary,
                     padded);
  const Values expected =
      reference::times_transposed(in.values, table.values, few, vocabulary);
  // Rows are padded: compare them one by one.
  for (std::int64_t row = 0; row < few; ++row) {
    TestTensor part = logits;
    part.view = logits.view.slice(row * padded, vocabulary);
    expect_near(part,
                Values(expected.begin() + row * vocabulary,
                       expected.begin() + (row + 1) * vocabulary),
                "logits");
  }

  // The padding's gradients are NaN and must not matter.
  const TestTensor dense = random(few * vocabulary);
  Values spread(few * padded, std::nan(""));
  for (std::int64_t row = 0; row < few; ++row)
    for (std::int64_t i = 0; i < vocabulary; ++i)
      spread[row * padded + i] = dense.values[row * vocabulary + i];
  const TestTensor dlogits = upload(spread, GetParam().dtype);
  for (bool add : {false, true}) {
    const TestTensor din = empty(few * width());
    const TestTensor dtable = target(vocabulary * width(), add);
    ops_->head_backward(din.view, as_target(dtable, add), dlogits.view, in.view,
                        table.view, few, width(), vocabulary, padded);
    expect_near(din,
                reference::linear(dense.values, table.values, {}, few, width()),
                "din");
    expect_gradient(dtable,
                    reference::transposed_times(dense.values, in.values, few),
                    add, "table");
  }
}

TEST_P(OpsTest, CrossEntropyIgnoresNegativeTargets) {
  const std::int64_t vocabulary = GetParam().vocabulary;
  const std::int64_t padded = (vocabulary + 127) / 128 * 128;
  const std::int64_t few = std::min<std::int64_t>(rows(), 48);
  auto numbers = random_tokens(few);
  numbers[1] = -1;
  const TestTensor targets = tokens(numbers);
  const TestTensor dense = random(few * vocabulary, 3);
  Values spread(few * padded, std::nan(""));
  for (std::int64_t row = 0; row < few; ++row)
    for (std::int64_t i = 0; i < vocabulary; ++i)
      spread[row * padded + i] = dense.values[row * vocabulary + i];
  const auto expected =
      reference::cross_entropy(dense.values, numbers, vocabulary);
  for (bool gradient : {false, true}) {
    const TestTensor logits = upload(spread, GetParam().dtype);
    const TestTensor losses = empty(few, ddp::DType::kFloat32);
    ops_->cross_entropy(losses.view, logits.view, targets.view, few, vocabulary,
                        padded, 0.25f, gradient);
    expect_near(losses, expected.losses, "losses");
    if (!gradient) continue;
    for (std::int64_t row = 0; row < few; ++row) {
      TestTensor part = logits;
      part.view = logits.view.slice(row * padded, vocabulary);
      Values scaled(expected.gradient.begin() + row * vocabulary,
                    expected.gradient.begin() + (row + 1) * vocabulary);
      for (double& each : scaled) each *= 0.25;
      expect_near(part, scaled, "gradient");
    }
  }
}

TEST_P(OpsTest, MeanLossDividesByTheCountAndAccumulates) {
  const TestTensor losses = random(rows(), 1, ddp::DType::kFloat32);
  const TestTensor mean = empty(1, ddp::DType::kFloat32);
  double expected = 0;
  for (double loss : losses.values) expected += loss / 10;
  ops_->mean_loss(mean.view.as<float>(), losses.view, 10, false);
  expect_near(mean, {expected}, "mean");
  ops_->mean_loss(mean.view.as<float>(), losses.view, 10, true);
  expect_near(mean, {2 * expected}, "accumulated mean");
}

TEST_P(OpsTest, GradientsRepeatBitForBit) {
  const std::int64_t c = width();
  const TestTensor token = tokens(random_tokens(rows()));
  const TestTensor qkv = random(3 * rows() * c);
  const TestTensor dout = random(rows() * c);
  const TestTensor out = empty(rows() * c);
  const TestTensor saved = bytes(ops_->attention_saved_bytes(shape()));
  ops_->attention_forward(out.view, saved.view, qkv.view, shape());
  std::vector<Values> runs;
  for (int run = 0; run < 2; ++run) {
    const TestTensor dqkv = empty(3 * rows() * c);
    const TestTensor dwords =
        empty(GetParam().vocabulary * c, GetParam().gradient);
    const TestTensor dplaces = empty(shape().sequence * c, GetParam().gradient);
    const TestTensor dweight = empty(c * 3 * c, GetParam().gradient);
    const TestTensor dbias = empty(3 * c, GetParam().gradient);
    ops_->attention_backward(dqkv.view, dout.view, out.view, saved.view,
                             qkv.view, shape());
    ops_->linear_backward_weight({dweight.view, false}, {dbias.view, false},
                                 dqkv.view, dout.view, rows(), c, 3 * c);
    ops_->embedding_backward({dwords.view, false}, {dplaces.view, false},
                             dout.view, token.view, rows(), shape().sequence, c,
                             GetParam().vocabulary);
    Values all;
    for (const TestTensor* each :
         {&dqkv, &dwords, &dplaces, &dweight, &dbias}) {
      const Values values = read(*each);
      all.insert(all.end(), values.begin(), values.end());
    }
    runs.push_back(std::move(all));
  }
  EXPECT_EQ(runs[0], runs[1]);
}

}  // namespace gpt
