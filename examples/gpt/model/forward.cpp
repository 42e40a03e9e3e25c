#include "examples/gpt/model/model.h"
#include "examples/gpt/model/parameters.h"

namespace gpt {
namespace {

GptConfig checked(GptConfig config, std::int64_t batch,
                  std::int64_t sequence) {
  DDP_EXPECT(config.layers > 0 && config.width > 0 && config.heads > 0 &&
                 config.vocabulary > 0 && config.width % config.heads == 0,
             InvalidArgument, "a model of ", config.layers, " layers, width ",
             config.width, ", ", config.heads, " heads, vocabulary ",
             config.vocabulary,
             ": all must be positive and the width a multiple of the heads");
  DDP_EXPECT(batch > 0 && sequence > 0, InvalidArgument, "a batch of ", batch,
             " sequences of ", sequence, " tokens: both must be positive");
  DDP_EXPECT(sequence <= config.sequence, InvalidArgument, "sequences of ",
             sequence, " tokens, but model ", config.name, " has ",
             config.sequence, " positions: give --sequence at most that");
  return config;
}

}  // namespace

Gpt::Gpt(GptConfig config, std::int64_t max_batch, std::int64_t max_sequence,
         ddp::DType dtype, std::unique_ptr<Ops> ops)
    : config_(checked(std::move(config), max_batch, max_sequence)),
      max_batch_(max_batch),
      max_sequence_(max_sequence),
      ops_(std::move(ops)),
      activations_(config_, max_batch, max_sequence, dtype, *ops_) {}

void Gpt::check(const BatchShape& shape) const {
  DDP_EXPECT(shape.batch > 0 && shape.sequence > 0 &&
                 shape.batch <= max_batch_ && shape.sequence <= max_sequence_,
             InvalidArgument, "a batch of ", shape.batch, " x ",
             shape.sequence, " tokens was given to a model made for 1 x 1 to ",
             max_batch_, " x ", max_sequence_);
}

/// The rows of this micro-batch.
TensorView Gpt::part(TensorView tensor, std::int64_t columns) const {
  return tensor.slice(0, shape_.rows() * columns);
}

TensorView Gpt::block_in(std::int64_t layer) const {
  const auto before = static_cast<std::size_t>(layer - 1);
  return part(
      layer == 0 ? activations_.embedding : activations_.blocks[before].out,
      config_.width);
}

AttentionShape Gpt::attention_shape() const {
  return {shape_.batch, shape_.sequence, config_.heads, config_.head_size()};
}

void Gpt::forward(const ParameterAccess& weights, const BatchShape& shape,
                  const ForwardOptions& options) {
  forward_logits(weights, shape);
  Activations& a = activations_;
  ops_->cross_entropy(part(a.losses, 1),
                      part(a.logits, config_.padded_vocabulary()),
                      part(a.targets, 1), shape_.rows(), config_.vocabulary,
                      config_.padded_vocabulary(),
                      static_cast<float>(1.0 / options.loss_count),
                      options.backward);
  ops_->mean_loss(a.mean_loss.as<float>(), part(a.losses, 1),
                  options.loss_count, options.accumulate_loss);
}

void Gpt::forward_logits(const ParameterAccess& weights,
                         const BatchShape& shape) {
  check(shape);
  shape_ = shape;
  Activations& a = activations_;
  const std::int64_t rows = shape_.rows();
  ops_->embedding_forward(part(a.embedding, config_.width), part(a.tokens, 1),
                          weights.weight(kTokenTable),
                          weights.weight(kPositionTable), rows,
                          shape_.sequence, config_.width);
  ops_->layernorm_forward(
      part(a.blocks[0].ln1, config_.width), part(a.blocks[0].ln1_mean, 1),
      part(a.blocks[0].ln1_rstd, 1), part(a.embedding, config_.width),
      weights.weight(parameter_index(0, kLn1Weight)),
      weights.weight(parameter_index(0, kLn1Bias)), rows, config_.width);
  for (std::int64_t layer = 0; layer < config_.layers; ++layer)
    forward_block(weights, layer);
  ops_->head_forward(part(a.logits, config_.padded_vocabulary()),
                     part(a.ln_f, config_.width), weights.weight(kTokenTable),
                     rows, config_.width, config_.vocabulary,
                     config_.padded_vocabulary());
}

void Gpt::forward_block(const ParameterAccess& weights, std::int64_t layer) {
  const BlockActivations& block =
      activations_.blocks[static_cast<std::size_t>(layer)];
  const std::int64_t rows = shape_.rows();
  const std::int64_t width = config_.width;
  const TensorView branch = part(activations_.branch, width);
  const auto w = [&](BlockParameter which) {
    return weights.weight(parameter_index(layer, which));
  };
  ops_->linear_forward(part(block.qkv, 3 * width), part(block.ln1, width),
                       w(kAttentionWeight), w(kAttentionBias), {}, rows, width,
                       3 * width);
  ops_->attention_forward(part(block.attention, width), block.saved,
                          part(block.qkv, 3 * width), attention_shape());
  ops_->linear_forward(branch, part(block.attention, width),
                       w(kAttentionOutWeight), w(kAttentionOutBias), {}, rows,
                       width, width);
  ops_->residual_layernorm_forward(
      part(block.middle, width), part(block.ln2, width),
      part(block.ln2_mean, 1), part(block.ln2_rstd, 1), block_in(layer),
      branch, w(kLn2Weight), w(kLn2Bias), rows, width);
  ops_->linear_forward(part(block.gelu, 4 * width), part(block.ln2, width),
                       w(kMlpWeight), w(kMlpBias),
                       part(block.pre_gelu, 4 * width), rows, width,
                       4 * width);
  ops_->linear_forward(branch, part(block.gelu, 4 * width), w(kMlpOutWeight),
                       w(kMlpOutBias), {}, rows, 4 * width, width);
  forward_norm(weights, layer);
}

/// Ends a block: its residual sum, and the norm that follows, which is the
/// next block's first or ln_f.
void Gpt::forward_norm(const ParameterAccess& weights, std::int64_t layer) {
  Activations& a = activations_;
  const BlockActivations& block = a.blocks[static_cast<std::size_t>(layer)];
  const bool last = layer + 1 == config_.layers;
  const BlockActivations* next = last ? nullptr : &block + 1;
  const int weight = parameter_index(layer + 1, kLn1Weight);  // or ln_f
  ops_->residual_layernorm_forward(
      part(block.out, config_.width),
      part(last ? a.ln_f : next->ln1, config_.width),
      part(last ? a.ln_f_mean : next->ln1_mean, 1),
      part(last ? a.ln_f_rstd : next->ln1_rstd, 1),
      part(block.middle, config_.width), part(a.branch, config_.width),
      weights.weight(weight), weights.weight(weight + 1), shape_.rows(),
      config_.width);
}

}  // namespace gpt
