#include "tests/unit/gpt/model_suite.h"

#include <cmath>

#include "examples/gpt/model/parameters.h"
#include "examples/gpt/train/weights_file.h"
#include "kernels/core/half.h"

namespace gpt {
namespace {

constexpr BatchShape kShape{3, 16};

GptConfig config_of_the_file() {
  return {.name = "reference",
          .layers = 2,
          .width = 32,
          .heads = 2,
          .sequence = 16,
          .vocabulary = 64};
}

}  // namespace

std::string model_case_name(const ::testing::TestParamInfo<ModelCase>& info) {
  return info.param.name;
}

void ModelTest::SetUp() {
  config_ = config_of_the_file();
  file_ = std::make_unique<ddp::SafetensorsFile>(std::string(GPT_TEST_FOLDER) +
                                                 "/model.safetensors");
  const ddp::DType dtype = GetParam().dtype;
  stream_ = std::make_unique<ddp::Stream>(GetParam().device);
  model_ = std::make_unique<Gpt>(config_, kShape.batch, kShape.sequence, dtype,
                                 GetParam().device.is_cpu()
                                     ? make_cpu_ops(dtype)
                                     : make_cuda_ops(dtype, *stream_));
  store_ = std::make_unique<ParameterStore>(parameters(config_, dtype),
                                            ddp::DType::kFloat32, *stream_);
  for (int p = 0; p < store_->count(); ++p) {
    ddp::ParameterSpec spec = store_->spec(p);
    spec.name = "weight/" + spec.name;
    std::vector<float> values(
        static_cast<std::size_t>(store_->weight(p).numel));
    read_weight(*file_, "model.safetensors", spec, values);
    store_->set_weight(p, values);
  }
  upload_tokens();
}

std::vector<float> ModelTest::read(const std::string& name) const {
  const ddp::SafetensorsEntry& entry = file_->at(name);
  std::vector<float> values(static_cast<std::size_t>(entry.numel()));
  file_->read(name, ddp::DType::kFloat32, entry.shape, values.data());
  return values;
}

void ModelTest::upload_tokens() {
  for (const char* name : {"tokens", "targets"}) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(kShape.rows()));
    const std::int64_t shape[] = {kShape.batch, kShape.sequence};
    file_->read(name, ddp::DType::kInt32, shape, values.data());
    const ddp::TensorView to =
        name[1] == 'o' ? model_->tokens() : model_->targets();
    ddp::copy_bytes(to.data, values.data(), to.bytes(), *stream_);
    ddp::synchronize(*stream_);
  }
}

double ModelTest::loss() const {
  float value = 0;
  ddp::copy_bytes(&value, model_->loss(), sizeof value, *stream_);
  ddp::synchronize(*stream_);
  return value;
}

double ModelTest::count() const {
  return static_cast<double>(kShape.rows() - 2);  // two targets are ignored
}

TEST_P(ModelTest, LossAndEveryGradientAreThoseOfTorch) {
  // Of the largest magnitude of each gradient. bf16 rounds each of the about
  // thirty operations on the longest path by up to 2^-9.
  const bool half = GetParam().dtype == ddp::DType::kBFloat16;
  const double tolerance = half ? 4e-2 : 1e-4;
  model_->forward(*store_, kShape, {.loss_count = count(), .backward = true});
  EXPECT_NEAR(loss(), read("loss")[0], half ? 2e-2 : 1e-5);
  model_->backward(*store_);
  for (int p = 0; p < store_->count(); ++p) {
    const std::string name = store_->spec(p).name;
    const std::vector<float> expected = read("gradient/" + name);
    const std::vector<float> actual = store_->gradient(p);
    ASSERT_EQ(actual.size(), expected.size()) << name;
    double largest = 0;
    for (float value : expected)
      largest = std::max<double>(largest, std::abs(value));
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_TRUE(std::abs(actual[i] - expected[i]) <= tolerance * largest)
          << name << " element " << i << ": " << actual[i] << " instead of "
          << expected[i] << ", the largest is " << largest;
  }
}

TEST_P(ModelTest, GradientsAreReportedOnceEachFromLastToFirst) {
  model_->forward(*store_, kShape, {.loss_count = count(), .backward = true});
  model_->backward(*store_);
  std::vector<int> expected;
  for (int p = store_->count() - 1; p >= 0; --p) expected.push_back(p);
  // Of each layer's tail the order is free; what counts is that a layer is
  // done before the one below it, and the tied table last.
  ASSERT_EQ(store_->ready().size(), expected.size());
  EXPECT_EQ(store_->ready().back(), kTokenTable);
  std::vector<int> sorted = store_->ready();
  std::sort(sorted.rbegin(), sorted.rend());
  EXPECT_EQ(sorted, expected);
  const auto layer_of = [](int p) { return (p + 10) / kBlockParameters; };
  for (std::size_t i = 1; i < expected.size(); ++i)
    EXPECT_LE(layer_of(store_->ready()[i]), layer_of(store_->ready()[i - 1]));
}

TEST_P(ModelTest, TwoMicroBatchesAccumulateLossAndGradients) {
  model_->forward(*store_, kShape, {.loss_count = count(), .backward = true});
  model_->backward(*store_);
  const double once = loss();
  std::vector<std::vector<float>> single;
  for (int p = 0; p < store_->count(); ++p)
    single.push_back(store_->gradient(p));
  model_->forward(
      *store_, kShape,
      {.loss_count = count(), .accumulate_loss = true, .backward = true});
  model_->backward(*store_);
  EXPECT_NEAR(loss(), 2 * once, 1e-6 * once);
  for (int p = 0; p < store_->count(); ++p) {
    const std::vector<float> both = store_->gradient(p);
    double largest = 0;
    for (float value : both)
      largest = std::max<double>(largest, std::abs(value));
    for (std::size_t i = 0; i < both.size(); ++i)
      ASSERT_TRUE(std::abs(both[i] - 2 * single[p][i]) <= 1e-5 * largest)
          << store_->spec(p).name << " element " << i;
  }
}

TEST_P(ModelTest, ASmallerBatchUsesTheFrontOfTheMemory) {
  // The first sequence alone has the logits that it has in the batch.
  const auto row = [&] {
    return download(model_->logits().slice(0, config_.vocabulary), *stream_);
  };
  model_->forward_logits(*store_, kShape);
  const std::vector<float> in_batch = row();
  model_->forward_logits(*store_, {1, 8});
  const std::vector<float> alone = row();
  for (std::size_t i = 0; i < alone.size(); ++i)
    EXPECT_NEAR(alone[i], in_batch[i],
                GetParam().dtype == ddp::DType::kFloat32 ? 1e-4 : 5e-2);
}

TEST_P(ModelTest, ABatchThatDoesNotFitIsRefused) {
  EXPECT_THROW(model_->forward_logits(*store_, {4, 16}), ddp::InvalidArgument);
  EXPECT_THROW(model_->forward_logits(*store_, {1, 17}), ddp::InvalidArgument);
  EXPECT_THROW(model_->forward_logits(*store_, {0, 16}), ddp::InvalidArgument);
}

}  // namespace gpt
