/// \file
/// The parameters of a GPT-2: their order, names, shapes and first values.
///
/// Order is forward's, names and layouts are those of the Hugging Face
/// checkpoints, so that files can be exchanged:
///
///     wte.weight wpe.weight
///     h.0.ln_1.{weight,bias} h.0.attn.c_attn.{weight,bias}
///     h.0.attn.c_proj.{weight,bias} h.0.ln_2.{weight,bias}
///     h.0.mlp.c_fc.{weight,bias} h.0.mlp.c_proj.{weight,bias}
///     h.1. ... ln_f.{weight,bias}
///
/// Weights of products are [in, out]. The head is wte, transposed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "examples/gpt/config.h"
#include "libddp/reduce/parameter.h"

namespace gpt {

inline constexpr int kTokenTable = 0;     ///< wte.weight [vocabulary, width]
inline constexpr int kPositionTable = 1;  ///< wpe.weight [sequence, width]

/// Parameters of one block, in order; the bias follows its weight.
enum BlockParameter : int {
  kLn1Weight,
  kLn1Bias,
  kAttentionWeight,  ///< [width, 3 width]: q, k, v
  kAttentionBias,
  kAttentionOutWeight,  ///< [width, width]
  kAttentionOutBias,
  kLn2Weight,
  kLn2Bias,
  kMlpWeight,  ///< [width, 4 width]
  kMlpBias,
  kMlpOutWeight,  ///< [4 width, width]
  kMlpOutBias,
  kBlockParameters,
};

/// Index of a parameter of block `layer`.
constexpr int parameter_index(std::int64_t layer,
                              BlockParameter which) noexcept {
  return 2 + static_cast<int>(layer) * kBlockParameters + which;
}
/// Index of ln_f.weight; ln_f.bias follows.
constexpr int final_norm_index(const GptConfig& config) noexcept {
  return parameter_index(config.layers, kLn1Weight);
}

/// All parameters, with weights of `dtype`.
std::vector<ddp::ParameterSpec> parameters(const GptConfig& config,
                                           ddp::DType dtype);

/// Whether weight decay acts on it: on matrices, not on biases and norms.
bool is_decayed(const ddp::ParameterSpec& parameter);

/// GPT-2's first values: normal with deviation 0.02, those of the projections
/// back into the residual stream divided by sqrt(2 layers); biases 0, scales
/// of norms 1. Each parameter has random numbers of its own, so values depend
/// on (config, parameter, seed) only.
void initialize(const GptConfig& config, int parameter, std::uint64_t seed,
                std::span<float> values);

}  // namespace gpt
