/// \file
/// ParameterStore: weights and gradients of one process, for tests of the
/// model without DataParallel.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "examples/gpt/model/parameter_access.h"
#include "libddp/device/buffer.h"

namespace gpt {

/// Gives every parameter memory on the device of `stream`. The first write of
/// a gradient overwrites, later ones add, until reset().
class ParameterStore final : public ParameterAccess {
 public:
  ParameterStore(std::vector<ddp::ParameterSpec> specs, ddp::DType gradient,
                 ddp::StreamView stream);

  ddp::TensorView weight(int parameter) const override;
  ddp::GradientTarget grad(int parameter, ddp::StreamView stream) override;
  void grad_ready(int parameter, ddp::StreamView stream) override;

  int count() const { return static_cast<int>(specs_.size()); }
  const ddp::ParameterSpec& spec(int parameter) const;
  void set_weight(int parameter, std::span<const float> values);
  std::vector<float> gradient(int parameter) const;
  /// Parameters in the order in which they were reported ready.
  const std::vector<int>& ready() const { return ready_; }
  void reset();

 private:
  std::vector<ddp::ParameterSpec> specs_;
  ddp::DType gradient_dtype_;
  ddp::StreamView stream_;
  std::vector<ddp::Buffer> weights_;
  std::vector<ddp::Buffer> gradients_;
  std::vector<bool> written_;
  std::vector<int> ready_;
};

/// fp32 values on the host as a tensor of `dtype` in `to`, and back.
void upload(ddp::TensorView to, std::span<const float> values,
            ddp::StreamView stream);
std::vector<float> download(ddp::TensorView from, ddp::StreamView stream);

}  // namespace gpt
