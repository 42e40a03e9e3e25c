/// \file
/// Element by element operations, used alone and where a product has no
/// epilogue of the kind. `numel` counts elements of the Context's dtype.
#pragma once

#include "examples/gpt/ops/cuda/scratch.h"

namespace gpt::cuda {

using ddp::TensorView;

/// out = a + b. `out` may be `a` or `b`.
void add(const Context& context, TensorView out, TensorView a, TensorView b);

/// out = gelu(in), tanh approximation.
void gelu_forward(const Context& context, TensorView out, TensorView in);

/// gradient *= gelu'(in).
void gelu_backward(const Context& context, TensorView gradient, TensorView in);

/// matrix[row, column] += bias[column].
void add_bias(const Context& context, TensorView matrix, TensorView bias,
              std::int64_t rows, std::int64_t columns);

/// Copies `rows` rows of `columns` elements and sets the rest of
/// padded_rows to zero; tensors are [rows or padded_rows, columns].
void copy_padded(const Context& context, TensorView padded, TensorView table,
                 std::int64_t columns);

/// matrix[row, column] = 0 for column in [from, columns).
void zero_columns(const Context& context, TensorView matrix, std::int64_t rows,
                  std::int64_t columns, std::int64_t from);

/// *mean = sum(losses) / count, added to what is there if `accumulate`.
void mean_loss(const Context& context, float* mean, TensorView losses,
               double count, bool accumulate);

}  // namespace gpt::cuda
