/// \file
/// EngineAccess: DataParallel as the model sees it.
#pragma once

#include "examples/gpt/model/parameter_access.h"
#include "libddp/engine/data_parallel.h"

namespace gpt {

class EngineAccess final : public ParameterAccess {
 public:
  /// `engine` must outlive this.
  explicit EngineAccess(ddp::DataParallel& engine) : engine_(engine) {}
  ddp::TensorView weight(int parameter) const override {
    return engine_.weight(parameter);
  }
  ddp::GradientTarget grad(int parameter, ddp::StreamView stream) override {
    return engine_.grad(parameter, stream);
  }
  void grad_ready(int parameter, ddp::StreamView stream) override {
    engine_.grad_ready(parameter, stream);
  }

 private:
  ddp::DataParallel& engine_;
};

}  // namespace gpt
