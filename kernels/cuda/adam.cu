#include "kernels/cuda/update.cuh"
#include "kernels/twins.h"

namespace ddp::cuda {
namespace {

struct AdamRule {
  using Values = formula::AdamValues;
  template <typename S>
  using Coefficients = formula::AdamCoefficients<S>;
  static constexpr bool kHasMoment2 = true;

  __device__ static bool uses_moment1(const Values&) { return true; }

  template <typename S>
  __device__ static Coefficients<S> coefficients(const Values& values,
                                                 std::int64_t time) {
    return formula::adam_coefficients<S>(values, time);
  }

  template <typename S>
  __device__ static void apply(S& w, S& m, S& v, S g, bool,
                               const Coefficients<S>& c) {
    formula::adam_element(w, m, v, g, c);
  }
};

}  // namespace

void adam(const UpdateTable& table, std::span<const formula::AdamValues> groups,
          const StepControl* control, const ParameterClocks& clocks,
          StreamView stream) {
  update<AdamRule>(table, groups, control, clocks, stream);
}

}  // namespace ddp::cuda
