/// \file
/// ParameterAccess: what the model needs of whoever holds its parameters.
#pragma once

#include "libddp/reduce/parameter.h"

namespace gpt {

/// Weights to read and gradients to write, by parameter index; the members of
/// the same names of ddp::DataParallel. In training DataParallel stands behind
/// it; in tests it may be a few arrays.
class ParameterAccess {
 public:
  virtual ~ParameterAccess() = default;
  virtual ddp::TensorView weight(int parameter) const = 0;
  /// Each call promises one write of the whole gradient on `stream`.
  virtual ddp::GradientTarget grad(int parameter, ddp::StreamView stream) = 0;
  /// The gradient is complete in order of `stream`.
  virtual void grad_ready(int parameter, ddp::StreamView stream) = 0;
};

}  // namespace gpt
