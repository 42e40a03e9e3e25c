/// \file
/// What the CPU and the CUDA twin of each operation are called. Arguments are
/// checked by then: lengths agree, dtypes are floating, and so on.
#pragma once

#include <span>

#include "kernels/elementwise.h"
#include "kernels/formula/adam.h"
#include "kernels/formula/sgd.h"
#include "kernels/step_vote.h"
#include "kernels/update_table.h"

namespace ddp {

namespace cpu {
void fill_zero(std::span<const TensorView> tensors);
void cast(std::span<const TensorPair> pairs);
void accumulate(std::span<const TensorPair> pairs);
void scale(std::span<const TensorView> tensors, double factor);
void scale_checked(std::span<const TensorView> tensors, const float* factor,
                   std::int32_t* non_finite);
void sum(TensorView destination, const PeerList& sources, DType source_dtype);
void checksum(TensorView tensor, std::uint64_t seed, std::uint64_t* result);
void norm(const UpdateTable& table, NormKind kind, double power,
          NormPart* part);
void cast_vote(const Vote& host_part, const NormPart* parts, std::int32_t count,
               NormKind kind, const float* loss, const std::uint64_t* replica,
               Vote* vote);
void decide(const Vote* votes, const VoteRules& rules, StepControl* control);
void advance_clocks(const StepControl* control, const ParameterClocks& clocks);
void adam(const UpdateTable& table, std::span<const formula::AdamValues> groups,
          const StepControl* control, const ParameterClocks& clocks);
void sgd(const UpdateTable& table, std::span<const formula::SgdValues> groups,
         const StepControl* control, const ParameterClocks& clocks);
}  // namespace cpu

/// In a build without CUDA these throw Unavailable.
namespace cuda {
void fill_zero(std::span<const TensorView> tensors, StreamView stream);
void cast(std::span<const TensorPair> pairs, StreamView stream);
void accumulate(std::span<const TensorPair> pairs, StreamView stream);
void scale(std::span<const TensorView> tensors, double factor,
           StreamView stream);
void scale_checked(std::span<const TensorView> tensors, const float* factor,
                   std::int32_t* non_finite, StreamView stream);
void sum(TensorView destination, const PeerList& sources, DType source_dtype,
         StreamView stream);
void checksum(TensorView tensor, std::uint64_t seed, std::uint64_t* result,
              StreamView stream);
void norm(const UpdateTable& table, NormKind kind, double power, NormPart* part,
          StreamView stream);
void cast_vote(const Vote& host_part, const NormPart* parts, std::int32_t count,
               NormKind kind, const float* loss, const std::uint64_t* replica,
               Vote* vote, StreamView stream);
void decide(const Vote* votes, const VoteRules& rules, StepControl* control,
            StreamView stream);
void advance_clocks(const StepControl* control, const ParameterClocks& clocks,
                    StreamView stream);
void adam(const UpdateTable& table, std::span<const formula::AdamValues> groups,
          const StepControl* control, const ParameterClocks& clocks,
          StreamView stream);
void sgd(const UpdateTable& table, std::span<const formula::SgdValues> groups,
         const StepControl* control, const ParameterClocks& clocks,
         StreamView stream);
}  // namespace cuda

}  // namespace ddp
