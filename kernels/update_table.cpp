#include "kernels/update_table.h"

#include <algorithm>

#include "kernels/check.h"
#include "kernels/prepared.h"

namespace ddp {
namespace {

constexpr const char* kWho = "UpdateTable";

void expect_run(const UpdateRun& run, std::size_t index) {
  DDP_EXPECT(run.numel >= 0, InvalidArgument, kWho, ": run ", index, " has ",
             run.numel, " elements; pass 0 or more");
  expect_peers(kWho, "weight", run.weight);
  expect_peers(kWho, "gradient", run.gradient);
  DDP_EXPECT(run.group >= 0 && run.clock >= -1, InvalidArgument, kWho, ": run ",
             index, " has group ", run.group, " and clock ", run.clock,
             "; groups start at 0 and clocks at -1 (the common one)");
  if (run.numel == 0) return;
  for (const PeerList* list : {&run.weight, &run.gradient})
    for (int i = 0; i < list->count; ++i)
      DDP_EXPECT(list->data[i] != nullptr, InvalidArgument, kWho, ": run ",
                 index, " of ", run.numel, " elements has a null ",
                 list == &run.weight ? "weight" : "gradient", " at entry ", i,
                 "; allocate it first");
}

}  // namespace

UpdateTable::UpdateTable() : prepared_(std::make_unique<Prepared>()) {}
UpdateTable::~UpdateTable() = default;
UpdateTable::UpdateTable(UpdateTable&&) noexcept = default;
UpdateTable& UpdateTable::operator=(UpdateTable&&) noexcept = default;

UpdateTable::UpdateTable(std::vector<UpdateRun> runs, DType weight_dtype,
                         DType gradient_dtype, Device device)
    : runs_(std::move(runs)),
      weight_dtype_(weight_dtype),
      gradient_dtype_(gradient_dtype),
      device_(device),
      prepared_(std::make_unique<Prepared>()) {
  expect_floating(kWho, weight_dtype);
  expect_floating(kWho, gradient_dtype);
  Prepared& p = *prepared_;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const UpdateRun& run = runs_[i];
    expect_run(run, i);
    numel_ += run.numel;
    if (run.numel == 0) continue;
    p.max_group = std::max(p.max_group, run.group);
    p.max_clock = std::max(p.max_clock, run.clock);
    p.all_moment1 = p.all_moment1 && run.moment1 != nullptr;
    p.all_moment2 = p.all_moment2 && run.moment2 != nullptr;
  }
  p.list = cut(runs_, weight_dtype, gradient_dtype);
  if (device.is_cuda()) {
    p.device = cuda::upload(runs_, p.list.chunks, device);
  } else {
    p.parts.resize(p.list.chunks.size());
  }
}

}  // namespace ddp
