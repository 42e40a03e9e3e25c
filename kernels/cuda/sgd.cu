#include "kernels/cuda/update.cuh"
#include "kernels/twins.h"

namespace ddp::cuda {
namespace {

struct SgdRule {
  using Values = formula::SgdValues;
  template <typename S>
  using Coefficients = formula::SgdCoefficients<S>;
  static constexpr bool kHasMoment2 = false;

  __device__ static bool uses_moment1(const Values& values) {
    return values.momentum != 0;
  }

  template <typename S>
  __device__ static Coefficients<S> coefficients(const Values& values,
                                                 std::int64_t time) {
    return formula::sgd_coefficients<S>(values, time);
  }

  template <typename S>
  __device__ static void apply(S& w, S& m, S&, S g, bool uses1,
                               const Coefficients<S>& c) {
    if (uses1) {
      formula::sgd_element(w, m, g, c);
    } else {
      formula::sgd_element(w, g, c);
    }
  }
};

}  // namespace

void sgd(const UpdateTable& table, std::span<const formula::SgdValues> groups,
         const StepControl* control, const ParameterClocks& clocks,
         StreamView stream) {
  update<SgdRule>(table, groups, control, clocks, stream);
}

}  // namespace ddp::cuda
