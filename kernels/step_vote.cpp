#include "kernels/step_vote.h"

#include "kernels/check.h"
#include "kernels/twins.h"

namespace ddp {

void norm(const UpdateTable& table, NormKind kind, double power, NormPart* part,
          StreamView stream) {
  DDP_EXPECT(part != nullptr, InvalidArgument,
             "norm: part is null; pass a NormPart on the stream's device");
  DDP_EXPECT(table.device() == stream.device, InvalidArgument,
             "norm: the table is for ", name(table.device()),
             " but the stream on ", name(stream.device),
             "; make the table for the stream's device");
  DDP_EXPECT(kind != NormKind::kPower || power > 0, InvalidArgument,
             "norm: power is ", power, "; pass one above 0");
  if (stream.device.is_cuda())
    return cuda::norm(table, kind, power, part, stream);
  cpu::norm(table, kind, power, part);
}

void cast_vote(const Vote& host_part, const NormPart* parts, std::int32_t count,
               NormKind kind, const float* loss, const std::uint64_t* replica,
               Vote* vote, StreamView stream) {
  DDP_EXPECT(vote != nullptr, InvalidArgument,
             "cast_vote: vote is null; pass a Vote on the stream's device");
  DDP_EXPECT(count == 0 || (count > 0 && parts != nullptr), InvalidArgument,
             "cast_vote: ", count, " NormParts at ",
             static_cast<const void*>(parts),
             "; pass 0 parts, or more and where they are");
  if (stream.device.is_cuda())
    return cuda::cast_vote(host_part, parts, count, kind, loss, replica, vote,
                           stream);
  cpu::cast_vote(host_part, parts, count, kind, loss, replica, vote);
}

void decide(const Vote* votes, const VoteRules& rules, StepControl* control,
            StreamView stream) {
  DDP_EXPECT(votes != nullptr && control != nullptr, InvalidArgument,
             "decide: votes or control is null; pass memory of the stream's "
             "device");
  DDP_EXPECT(rules.world >= 1, InvalidArgument, "decide: world is ",
             rules.world, "; pass the number of votes, 1 or more");
  DDP_EXPECT(rules.clip_norm >= 0, InvalidArgument, "decide: clip_norm is ",
             rules.clip_norm, "; pass 0 (no clipping) or more");
  DDP_EXPECT(rules.kind != NormKind::kPower || rules.power > 0, InvalidArgument,
             "decide: power is ", rules.power, "; pass one above 0");
  if (stream.device.is_cuda())
    return cuda::decide(votes, rules, control, stream);
  cpu::decide(votes, rules, control);
}

void advance_clocks(const StepControl* control, const ParameterClocks& clocks,
                    StreamView stream) {
  if (clocks.count == 0) return;
  DDP_EXPECT(control != nullptr && clocks.used != nullptr &&
                 clocks.time != nullptr && clocks.count > 0,
             InvalidArgument, "advance_clocks: ", clocks.count,
             " clocks, with a null control, used or time; pass all three in "
             "memory of the stream's device");
  if (stream.device.is_cuda())
    return cuda::advance_clocks(control, clocks, stream);
  cpu::advance_clocks(control, clocks);
}

}  // namespace ddp
