/// \file
/// Causal self-attention over packed qkv, by three means with one contract.
///
/// qkv and dqkv are [batch, sequence, 3, heads, head_size]; out and dout
/// [batch, sequence, heads, head_size]. What forward saves for backward is
/// lse[batch, heads, sequence] in fp32, the logarithm of each row's softmax
/// denominator: lse = ln(sum over keys of exp(q * k / sqrt(head_size))).
/// Since all means save the same, one may do forward and another backward.
#pragma once

#include <initializer_list>
#include <memory>

#include "examples/gpt/ops/cuda/scratch.h"
#include "examples/gpt/ops/ops.h"

namespace gpt::cuda {

struct AttentionForward {
  TensorView out, lse, qkv;
  AttentionShape shape;
};

struct AttentionBackward {
  TensorView dqkv, dout, out, lse, qkv;
  AttentionShape shape;
};

/// Flash attention (Dao 2023) on tensor cores: bf16, head sizes 32, 64 and
/// 128, memory aligned to 16 bytes. Backward runs in two kernels, one for dq
/// and one for dk and dv, each of which owns what it writes: it repeats bit
/// for bit, at the price of computing the scores twice.
bool flash_attention_supports(const Context& context,
                              const AttentionShape& shape, ddp::DType dtype,
                              std::initializer_list<const void*> memory);
void flash_attention_forward(const Context& context,
                             const AttentionForward& args);
void flash_attention_backward(Context& context, const AttentionBackward& args);

/// The same on plain fp32 arithmetic: both dtypes, head sizes up to 256.
void simple_attention_forward(const Context& context,
                              const AttentionForward& args);
void simple_attention_backward(Context& context, const AttentionBackward& args);

/// Fused attention of a library, bf16 only.
class LibraryAttention {
 public:
  virtual ~LibraryAttention() = default;
  /// False, with nothing enqueued, where the library refuses the shape.
  [[nodiscard]] virtual bool forward(Context& context,
                                     const AttentionForward& args) = 0;
  [[nodiscard]] virtual bool backward(Context& context,
                                      const AttentionBackward& args) = 0;
};

/// cuDNN's attention, or null in a build without it or where it does not
/// load. `deterministic` asks for the backward that repeats bit for bit.
std::unique_ptr<LibraryAttention> make_cudnn_attention(ddp::StreamView stream,
                                                       bool deterministic);

}  // namespace gpt::cuda
