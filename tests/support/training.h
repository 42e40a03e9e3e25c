/// \file
/// What training tests share: writing gradients by hand, and a plain
/// double-precision writing of the optimizers to judge against.
#pragma once

#include <vector>

#include "libddp/engine/data_parallel.h"

namespace ddp::test {

/// Writes `values` where backward would, overwriting or adding as the target
/// says, and reports the gradient ready. Host memory only.
void give(DataParallel& dp, int parameter, const std::vector<double>& values);
/// The same without reporting.
void write_gradient(DataParallel& dp, int parameter,
                    const std::vector<double>& values);

/// 0-dim fp32 parameters of these names.
std::vector<ParameterSpec> scalars(const std::vector<std::string>& names);
/// All weights become 1. Collective.
void fill_ones(DataParallel& dp);

/// Runs `act` and returns the text of the error of type E that it throws.
template <typename E, typename Act>
std::string error_of(Act act) {
  try {
    act();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// Elements of a tensor on the host, in fp64.
std::vector<double> values_of(TensorView tensor);

/// One parameter of a single process, updated in double precision as the
/// papers say (see kernels/update.h).
struct ReferenceParameter {
  std::vector<double> weight;
  std::vector<double> moment1, moment2;
  int time = 0;

  explicit ReferenceParameter(std::vector<double> initial);
  /// `gradient` is scaled and clipped already.
  void update(const OptimizerConfig& config,
              const std::vector<double>& gradient, double lr_factor = 1);
};

}  // namespace ddp::test
