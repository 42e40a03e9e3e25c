/// \file
/// Gpt: GPT-2's forward and backward over one micro-batch.
#pragma once

#include <cstdint>
#include <memory>

#include "examples/gpt/config.h"
#include "examples/gpt/model/activations.h"
#include "examples/gpt/model/parameter_access.h"
#include "examples/gpt/ops/ops.h"

namespace gpt {

/// The shape of one micro-batch, at most what the model was made for.
struct BatchShape {
  std::int64_t batch = 0;     ///< sequences
  std::int64_t sequence = 0;  ///< tokens of each
  std::int64_t rows() const noexcept { return batch * sequence; }
};

struct ForwardOptions {
  /// Loss and gradient are divided by this: the rows with a target of all
  /// micro-batches of a step together.
  double loss_count = 1;
  /// Add to the loss of the micro-batches before this one.
  bool accumulate_loss = false;
  /// Backward follows: the logits become their gradient.
  bool backward = false;
};

/// Computes on the stream and with the dtype of its Ops. Weights belong to
/// somebody else (ParameterAccess). Nothing here waits for the device. One
/// thread at a time.
class Gpt {
 public:
  /// Takes memory for micro-batches up to `max_batch` x `max_sequence`.
  /// Throws InvalidArgument if that is longer than config.sequence.
  Gpt(GptConfig config, std::int64_t max_batch, std::int64_t max_sequence,
      ddp::DType dtype, std::unique_ptr<Ops> ops);

  const GptConfig& config() const noexcept { return config_; }
  ddp::StreamView stream() const { return ops_->stream(); }
  std::size_t activation_bytes() const { return activations_.memory.bytes(); }

  /// Where the caller puts tokens and targets (int32, row by row) in order of
  /// stream(). Targets below 0 count nothing.
  TensorView tokens() const { return activations_.tokens; }
  TensorView targets() const { return activations_.targets; }

  /// The loss of the rows at tokens() and targets(), to loss().
  void forward(const ParameterAccess& weights, const BatchShape& shape,
               const ForwardOptions& options);
  /// Logits [rows, padded vocabulary] alone, without targets.
  void forward_logits(const ParameterAccess& weights, const BatchShape& shape);
  /// Writes every gradient of the last forward() (with .backward), from the
  /// last layer to the first; each is reported as soon as it is complete. The
  /// tied wte is written twice, by the head first and by the embedding last,
  /// and reported once, at the end.
  void backward(ParameterAccess& parameters);

  /// A float on the device.
  const float* loss() const { return activations_.mean_loss.as<float>(); }
  TensorView logits() const { return activations_.logits; }

 private:
  TensorView part(TensorView tensor, std::int64_t columns) const;
  TensorView block_in(std::int64_t layer) const;
  void check(const BatchShape& shape) const;
  void forward_block(const ParameterAccess& weights, std::int64_t layer);
  void forward_norm(const ParameterAccess& weights, std::int64_t layer);
  void backward_head(ParameterAccess& parameters);
  void backward_mlp(ParameterAccess& parameters, std::int64_t layer);
  void backward_attention(ParameterAccess& parameters, std::int64_t layer);
  void backward_embedding(ParameterAccess& parameters);
  void backward_norm(ParameterAccess& parameters, int weight, TensorView in,
                     TensorView mean, TensorView rstd);
  void backward_weight(ParameterAccess& parameters, int weight,
                       TensorView dout, TensorView in, std::int64_t in_columns,
                       std::int64_t out_columns);
  AttentionShape attention_shape() const;

  GptConfig config_;
  std::int64_t max_batch_;
  std::int64_t max_sequence_;
  std::unique_ptr<Ops> ops_;
  Activations activations_;
  BatchShape shape_;
};

}  // namespace gpt
