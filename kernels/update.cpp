#include "kernels/update.h"

#include <charconv>
#include <vector>

#include "kernels/check.h"
#include "kernels/prepared.h"
#include "kernels/twins.h"

namespace ddp {
namespace {

/// The shortest decimal that names `value`: a beta of 0.999f means 0.999, as
/// in a script, and not 0.99900001287..., whose complement is off by 1e-5.
double decimal(float value) {
  char text[64];
  const auto written = std::to_chars(text, text + sizeof text, value);
  double result = value;
  std::from_chars(text, written.ptr, result);
  return result;
}

void expect_call(const char* who, const UpdateTable& table, std::size_t groups,
                 const StepControl* control, const ParameterClocks& clocks,
                 StreamView stream) {
  const UpdateTable::Prepared& p = *table.prepared();
  DDP_EXPECT(table.device() == stream.device, InvalidArgument, who,
             ": the table is for ", name(table.device()), " but the stream on ",
             name(stream.device), "; make the table for the stream's device");
  DDP_EXPECT(control != nullptr, InvalidArgument, who,
             ": control is null; pass a StepControl on the stream's device");
  DDP_EXPECT(p.max_group < static_cast<std::int64_t>(groups), InvalidArgument,
             who, ": a run belongs to group ", p.max_group, " but there are ",
             groups, " groups; pass the hyper-parameters of every group");
  DDP_EXPECT(p.max_clock < clocks.count, InvalidArgument, who,
             ": a run follows clock ", p.max_clock, " but there are ",
             clocks.count, " clocks; pass ParameterClocks for all of them");
  DDP_EXPECT(
      p.max_clock < 0 || (clocks.used != nullptr && clocks.time != nullptr),
      InvalidArgument, who,
      ": ParameterClocks without memory; pass used and time");
}

}  // namespace

void adam(const UpdateTable& table, std::span<const AdamStep> groups,
          const StepControl* control, const ParameterClocks& clocks,
          StreamView stream) {
  expect_call("adam", table, groups.size(), control, clocks, stream);
  DDP_EXPECT(table.prepared()->all_moment1 && table.prepared()->all_moment2,
             InvalidArgument,
             "adam: a run has no moment1 or no moment2; allocate both, zeroed");
  std::vector<formula::AdamValues> values;
  values.reserve(groups.size());
  for (const AdamStep& g : groups)
    values.push_back({decimal(g.lr), decimal(g.beta1), decimal(g.beta2),
                      decimal(g.eps), decimal(g.weight_decay), g.decoupled});
  if (stream.device.is_cuda())
    return cuda::adam(table, values, control, clocks, stream);
  cpu::adam(table, values, control, clocks);
}

void sgd(const UpdateTable& table, std::span<const SgdStep> groups,
         const StepControl* control, const ParameterClocks& clocks,
         StreamView stream) {
  expect_call("sgd", table, groups.size(), control, clocks, stream);
  std::vector<formula::SgdValues> values;
  values.reserve(groups.size());
  bool momentum = false;
  for (const SgdStep& g : groups) {
    momentum = momentum || g.momentum != 0;
    values.push_back({decimal(g.lr), decimal(g.momentum), decimal(g.dampening),
                      decimal(g.weight_decay), g.nesterov});
  }
  if (momentum && !table.prepared()->all_moment1)
    for (const UpdateRun& run : table.runs())
      DDP_EXPECT(run.numel == 0 || run.moment1 != nullptr ||
                     groups[static_cast<std::size_t>(run.group)].momentum == 0,
                 InvalidArgument, "sgd: group ", run.group,
                 " has momentum but a run of it no moment1; allocate it");
  if (stream.device.is_cuda())
    return cuda::sgd(table, values, control, clocks, stream);
  cpu::sgd(table, values, control, clocks);
}

}  // namespace ddp
