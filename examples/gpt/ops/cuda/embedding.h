/// \file
/// Token and position embeddings, forward and backward.
#pragma once

#include "examples/gpt/ops/cuda/scratch.h"
#include "libddp/reduce/parameter.h"

namespace gpt::cuda {

using ddp::TensorView;

struct EmbeddingForward {
  TensorView out, tokens, token_table, position_table;
  std::int64_t rows = 0, sequence = 0, width = 0;
};

struct EmbeddingBackward {
  ddp::GradientTarget token_table, position_table;
  TensorView dout, tokens;
  std::int64_t rows = 0, sequence = 0, width = 0, vocabulary = 0;
};

void embedding_forward(const Context& context, const EmbeddingForward& args);

/// Tokens are sorted on the device (stably, so equal tokens keep the order of
/// their rows), then each run of equal tokens is summed in that order: no
/// atomics, no wait.
void embedding_backward(Context& context, const EmbeddingBackward& args);

}  // namespace gpt::cuda
