/// \file
/// Kernels of one instruction set (GPT_ISA), as kernels.h describes them.
#pragma once

#include "examples/gpt/ops/cpu/kernels.h"

#ifndef GPT_ISA
#define GPT_ISA baseline
#endif

namespace gpt::GPT_ISA {

using std::int64_t;

void layernorm(float* residual, float* out, float* mean, float* rstd,
               const float* a, const float* b, const float* weight,
               const float* bias, int64_t rows, int64_t width);
void layernorm_backward(float* din, float* dweight, float* dbias,
                        const float* dout, const float* in, const float* weight,
                        const float* mean, const float* rstd, int64_t rows,
                        int64_t width);
void repeat_row(float* x, const float* row, int64_t rows, int64_t width);
void gelu(float* out, const float* in, int64_t count);
void gelu_backward(float* dout, const float* pre, int64_t count);
void add(float* out, const float* a, const float* b, int64_t count);
void column_sums(float* sums, const float* x, int64_t rows, int64_t width);
float cross_entropy(float* logits, int64_t target, int64_t vocabulary,
                    float scale, bool gradient);
int64_t attention_scratch(int64_t sequence, int64_t head_size, bool backward);
void attention(const AttentionHead& head, float* scratch);
void attention_backward(const AttentionHead& head, float* scratch);

/// The table of this instruction set.
const Kernels& table();

}  // namespace gpt::GPT_ISA
