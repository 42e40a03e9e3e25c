#include "kernels/cuda/launch.cuh"
#include "kernels/formula/vote.h"
#include "kernels/twins.h"

namespace ddp::cuda {
namespace {

constexpr int kStagedVotes = 128;

__global__ void cast_vote_kernel(const __grid_constant__ Vote host_part,
                                 const NormPart* parts, std::int32_t count,
                                 NormKind kind, const float* loss,
                                 const std::uint64_t* replica, Vote* vote) {
  *vote = formula::make_vote(host_part, parts, count, kind, loss, replica);
}

/// The block fetches votes together, since one thread would wait for each;
/// thread 0 counts them in rank order.
__global__ void __launch_bounds__(kThreads)
    decide_kernel(const Vote* votes, const __grid_constant__ VoteRules rules,
                  StepControl* control) {
  constexpr int kWordsPerVote = sizeof(Vote) / sizeof(std::uint64_t);
  __shared__ std::uint64_t words[kStagedVotes * kWordsPerVote];
  formula::Tally tally;
  for (std::int32_t first = 0; first < rules.world; first += kStagedVotes) {
    const std::int32_t count = min(kStagedVotes, rules.world - first);
    const auto* from = reinterpret_cast<const std::uint64_t*>(votes + first);
    for (std::int32_t i = threadIdx.x; i < count * kWordsPerVote;
         i += blockDim.x)
      words[i] = from[i];
    __syncthreads();
    if (threadIdx.x == 0)
      for (std::int32_t i = 0; i < count; ++i) {
        Vote vote;
        memcpy(&vote, words + i * kWordsPerVote, sizeof vote);
        formula::count_vote(tally, vote, first + i, rules);
      }
    __syncthreads();
  }
  if (threadIdx.x == 0) formula::conclude(tally, rules, control);
}

__global__ void clocks_kernel(const StepControl* control,
                              ParameterClocks clocks) {
  if (control->apply == 0) return;
  const std::int32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < clocks.count && clocks.used[i] != 0) ++clocks.time[i];
}

}  // namespace

void cast_vote(const Vote& host_part, const NormPart* parts, std::int32_t count,
               NormKind kind, const float* loss, const std::uint64_t* replica,
               Vote* vote, StreamView stream) {
  const CurrentDevice current(stream.device);
  cast_vote_kernel<<<1, 1, 0, handle(stream)>>>(host_part, parts, count, kind,
                                                loss, replica, vote);
  DDP_CUDA_LAUNCHED();
}

void decide(const Vote* votes, const VoteRules& rules, StepControl* control,
            StreamView stream) {
  const CurrentDevice current(stream.device);
  decide_kernel<<<1, kThreads, 0, handle(stream)>>>(votes, rules, control);
  DDP_CUDA_LAUNCHED();
}

void advance_clocks(const StepControl* control, const ParameterClocks& clocks,
                    StreamView stream) {
  const CurrentDevice current(stream.device);
  const unsigned grid =
      static_cast<unsigned>((clocks.count + kThreads - 1) / kThreads);
  clocks_kernel<<<grid, kThreads, 0, handle(stream)>>>(control, clocks);
  DDP_CUDA_LAUNCHED();
}

}  // namespace ddp::cuda
