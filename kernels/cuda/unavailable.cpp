// The CUDA twins of a build without CUDA.
#include "kernels/core/error.h"
#include "kernels/prepared.h"
#include "kernels/twins.h"

namespace ddp::cuda {
namespace {

[[noreturn]] void unavailable(const char* operation) {
  throw Unavailable(
      concat(operation,
             ": a GPU was asked for, but libddp was built without CUDA; "
             "configure with -DLIBDDP_CUDA=ON, or use Device::cpu()"));
}

}  // namespace

std::unique_ptr<DeviceTable> upload(const std::vector<UpdateRun>&,
                                    const std::vector<Chunk>&, Device) {
  unavailable("UpdateTable");
}
void fill_zero(std::span<const TensorView>, StreamView) {
  unavailable("fill_zero");
}
void cast(std::span<const TensorPair>, StreamView) { unavailable("cast"); }
void accumulate(std::span<const TensorPair>, StreamView) {
  unavailable("accumulate");
}
void scale(std::span<const TensorView>, double, StreamView) {
  unavailable("scale");
}
void scale_checked(std::span<const TensorView>, const float*, std::int32_t*,
                   StreamView) {
  unavailable("scale_checked");
}
void sum(TensorView, const PeerList&, DType, StreamView) { unavailable("sum"); }
void checksum(TensorView, std::uint64_t, std::uint64_t*, StreamView) {
  unavailable("checksum");
}
void norm(const UpdateTable&, NormKind, double, NormPart*, StreamView) {
  unavailable("norm");
}
void cast_vote(const Vote&, const NormPart*, std::int32_t, NormKind,
               const float*, const std::uint64_t*, Vote*, StreamView) {
  unavailable("cast_vote");
}
void decide(const Vote*, const VoteRules&, StepControl*, StreamView) {
  unavailable("decide");
}
void advance_clocks(const StepControl*, const ParameterClocks&, StreamView) {
  unavailable("advance_clocks");
}
void adam(const UpdateTable&, std::span<const formula::AdamValues>,
          const StepControl*, const ParameterClocks&, StreamView) {
  unavailable("adam");
}
void sgd(const UpdateTable&, std::span<const formula::SgdValues>,
         const StepControl*, const ParameterClocks&, StreamView) {
  unavailable("sgd");
}

}  // namespace ddp::cuda
