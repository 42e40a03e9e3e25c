/// \file
/// Activations: all memory of a forward and backward, planned once.
#pragma once

#include <cstdint>
#include <vector>

#include "examples/gpt/config.h"
#include "examples/gpt/ops/ops.h"
#include "libddp/device/buffer.h"

namespace gpt {

/// What backward reads of one block. R rows (batch * sequence), C width; every
/// tensor has the model's dtype but the statistics (fp32) and `saved` (bytes
/// of the attention's choice).
struct BlockActivations {
  TensorView ln1;        ///< [R, C], input of the attention's projection
  TensorView ln1_mean;   ///< [R]
  TensorView ln1_rstd;   ///< [R]
  TensorView qkv;        ///< [R, 3C]
  TensorView saved;      ///< attention_saved_bytes()
  TensorView attention;  ///< [R, C], before its output projection
  TensorView middle;     ///< [R, C], residual stream after attention
  TensorView ln2;        ///< [R, C]
  TensorView ln2_mean;   ///< [R]
  TensorView ln2_rstd;   ///< [R]
  TensorView pre_gelu;   ///< [R, 4C]
  TensorView gelu;       ///< [R, 4C]
  TensorView out;        ///< [R, C], residual stream after the block
};

/// One block of memory, cut when the model is made; nothing is allocated in a
/// step. With s bytes an element, R = batch * sequence and L layers:
///
///     | blocks: L x R x (16 C s + 16) + saved | embedding R C s
///     | ln_f R (C s + 8) | logits R V s | losses 4 R | tokens, targets 8 R
///     | gradients: residual R C s, branch R C s, wide R 4C s |
///
/// Backward keeps three gradients: that of the residual stream, that of the
/// branch it is in (also the branch's output in forward), and a wide one for
/// the MLP's inside or, after it, for q, k and v. GPT-2 124 M in bf16 with 32 x
/// 1024 tokens takes 14 GB, 3.3 of them logits, whose gradient takes their
/// place.
struct Activations {
  Activations(const GptConfig& config, std::int64_t max_batch,
              std::int64_t max_sequence, ddp::DType dtype, const Ops& ops);

  ddp::Buffer memory;
  TensorView embedding;  ///< [R, C], residual stream before the first block
  std::vector<BlockActivations> blocks;
  TensorView ln_f;       ///< [R, C]
  TensorView ln_f_mean;  ///< [R]
  TensorView ln_f_rstd;  ///< [R]
  TensorView logits;     ///< [R, padded vocabulary]
  TensorView losses;     ///< [R]
  TensorView mean_loss;  ///< [1]
  TensorView tokens;     ///< int32 [R]
  TensorView targets;    ///< int32 [R]
  TensorView dresidual;  ///< [R, C]
  TensorView branch;     ///< [R, C]
  TensorView wide;       ///< [R, 4C]
};

}  // namespace gpt
