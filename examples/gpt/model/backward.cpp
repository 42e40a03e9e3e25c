// Backward walks forward's steps in reverse. `dresidual` holds the gradient of
// the residual stream at the point reached, `branch` and `wide` those inside
// the branch that leaves it.
#include "examples/gpt/model/model.h"
#include "examples/gpt/model/parameters.h"

namespace gpt {

void Gpt::backward(ParameterAccess& parameters) {
  backward_head(parameters);
  for (std::int64_t layer = config_.layers - 1; layer >= 0; --layer) {
    backward_mlp(parameters, layer);
    backward_attention(parameters, layer);
  }
  backward_embedding(parameters);
}

void Gpt::backward_head(ParameterAccess& parameters) {
  Activations& a = activations_;
  const std::int64_t width = config_.width;
  const TensorView residual = part(a.dresidual, width);
  // The embedding completes the table's gradient, so it is not ready yet.
  ops_->head_backward(part(a.branch, width),
                      parameters.grad(kTokenTable, stream()),
                      part(a.logits, config_.padded_vocabulary()),
                      part(a.ln_f, width), parameters.weight(kTokenTable),
                      shape_.rows(), width, config_.vocabulary,
                      config_.padded_vocabulary());
  ddp::zero_bytes(residual.data, residual.bytes(), stream());
  backward_norm(parameters, final_norm_index(config_),
                block_in(config_.layers), a.ln_f_mean, a.ln_f_rstd);
}

void Gpt::backward_mlp(ParameterAccess& parameters, std::int64_t layer) {
  const BlockActivations& block =
      activations_.blocks[static_cast<std::size_t>(layer)];
  const std::int64_t width = config_.width;
  const std::int64_t rows = shape_.rows();
  const TensorView residual = part(activations_.dresidual, width);
  const TensorView branch = part(activations_.branch, width);
  const TensorView wide = part(activations_.wide, 4 * width);
  const int out_weight = parameter_index(layer, kMlpOutWeight);
  const int in_weight = parameter_index(layer, kMlpWeight);

  backward_weight(parameters, out_weight, residual,
                  part(block.gelu, 4 * width), 4 * width, width);
  ops_->linear_backward_input(wide, residual, parameters.weight(out_weight),
                              part(block.pre_gelu, 4 * width), rows, 4 * width,
                              width);
  backward_weight(parameters, in_weight, wide, part(block.ln2, width), width,
                  4 * width);
  ops_->linear_backward_input(branch, wide, parameters.weight(in_weight), {},
                              rows, width, 4 * width);
  backward_norm(parameters, parameter_index(layer, kLn2Weight),
                part(block.middle, width), block.ln2_mean, block.ln2_rstd);
}

void Gpt::backward_attention(ParameterAccess& parameters, std::int64_t layer) {
  const BlockActivations& block =
      activations_.blocks[static_cast<std::size_t>(layer)];
  const std::int64_t width = config_.width;
  const std::int64_t rows = shape_.rows();
  const TensorView residual = part(activations_.dresidual, width);
  const TensorView branch = part(activations_.branch, width);
  const TensorView dqkv = part(activations_.wide, 3 * width);
  const int out_weight = parameter_index(layer, kAttentionOutWeight);
  const int in_weight = parameter_index(layer, kAttentionWeight);

  backward_weight(parameters, out_weight, residual,
                  part(block.attention, width), width, width);
  ops_->linear_backward_input(branch, residual, parameters.weight(out_weight),
                              {}, rows, width, width);
  ops_->attention_backward(dqkv, branch, part(block.attention, width),
                           block.saved, part(block.qkv, 3 * width),
                           attention_shape());
  backward_weight(parameters, in_weight, dqkv, part(block.ln1, width), width,
                  3 * width);
  ops_->linear_backward_input(branch, dqkv, parameters.weight(in_weight), {},
                              rows, width, 3 * width);
  backward_norm(parameters, parameter_index(layer, kLn1Weight),
                block_in(layer), block.ln1_mean, block.ln1_rstd);
}

void Gpt::backward_embedding(ParameterAccess& parameters) {
  const GradientTarget table = parameters.grad(kTokenTable, stream());
  const GradientTarget positions = parameters.grad(kPositionTable, stream());
  ops_->embedding_backward(table, positions,
                           part(activations_.dresidual, config_.width),
                           part(activations_.tokens, 1), shape_.rows(),
                           shape_.sequence, config_.width,
                           config_.vocabulary);
  parameters.grad_ready(kPositionTable, stream());
  parameters.grad_ready(kTokenTable, stream());
}

/// Adds the gradient through a norm, in `branch`, to the residual stream's.
void Gpt::backward_norm(ParameterAccess& parameters, int weight, TensorView in,
                        TensorView mean, TensorView rstd) {
  const int bias = weight + 1;
  const GradientTarget bias_grad = parameters.grad(bias, stream());
  const GradientTarget weight_grad = parameters.grad(weight, stream());
  ops_->layernorm_backward(
      part(activations_.dresidual, config_.width), weight_grad, bias_grad,
      part(activations_.branch, config_.width), in, parameters.weight(weight),
      part(mean, 1), part(rstd, 1), shape_.rows(), config_.width);
  parameters.grad_ready(bias, stream());
  parameters.grad_ready(weight, stream());
}

void Gpt::backward_weight(ParameterAccess& parameters, int weight,
                          TensorView dout, TensorView in,
                          std::int64_t in_columns, std::int64_t out_columns) {
  const int bias = weight + 1;
  const GradientTarget bias_grad = parameters.grad(bias, stream());
  const GradientTarget weight_grad = parameters.grad(weight, stream());
  ops_->linear_backward_weight(weight_grad, bias_grad, dout, in,
                               shape_.rows(), in_columns, out_columns);
  parameters.grad_ready(bias, stream());
  parameters.grad_ready(weight, stream());
}

}  // namespace gpt
