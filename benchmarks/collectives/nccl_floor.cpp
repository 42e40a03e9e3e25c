#include "benchmarks/collectives/floor.h"

#if DDP_HAS_NCCL
#include <cuda_runtime_api.h>

#include <cstring>

#include "libddp/backends/nccl/memory.h"
#include "libddp/backends/nccl/nccl_call.h"
#include "libddp/device/stream.h"

namespace ddp::bench {
namespace {

using nccl::Handle;

void check(ncclResult_t result) {
  DDP_EXPECT(result == ncclSuccess, DeviceError,
             "raw NCCL failed: ", nccl::error_text(result, nullptr));
}

std::size_t count_of(TensorView tensor) {
  return static_cast<std::size_t>(tensor.numel);
}

cudaStream_t handle_of(StreamView stream) {
  return static_cast<cudaStream_t>(stream.handle);
}

// fp32 sums, in place, over the world, set up as the backend's own.
class NcclFloor final : public Floor {
 public:
  explicit NcclFloor(const World& world)
      : settings_(nccl::settings_for(Traffic::kTail, world.environment())) {
    ncclUniqueId id{};
    std::string mine;
    if (world.rank() == 0) {
      check(ncclGetUniqueId(&id));
      mine.assign(id.internal, sizeof id.internal);
    }
    const auto all = world.control().exchange(
        "bench floor", mine, Deadline::in(std::chrono::minutes(1)));
    std::memcpy(id.internal, all[0].data(), sizeof id.internal);
    const DeviceGuard guard(world.device());
    check(ncclCommInitRankConfig(&comm_, world.size(), id, world.rank(),
                                 &settings_.config));
  }
  ~NcclFloor() override {
    nccl::withdraw(comm_, memory_);
    (void)ncclCommDestroy(comm_);
  }

  std::string_view name() const override { return "raw NCCL"; }
  void enroll(TensorView memory) override {
    memory_ = nccl::enroll(comm_, memory.data, memory.bytes(),
                           settings_.registration);
  }
  void all_reduce(TensorView tensor, StreamView stream) override {
    check(ncclAllReduce(tensor.data, tensor.data, count_of(tensor), ncclFloat32,
                        ncclSum, comm_, handle_of(stream)));
  }
  void reduce_scatter(TensorView whole, TensorView own,
                      StreamView stream) override {
    check(ncclReduceScatter(whole.data, own.data, count_of(own), ncclFloat32,
                            ncclSum, comm_, handle_of(stream)));
  }
  void all_gather(TensorView own, TensorView whole,
                  StreamView stream) override {
    check(ncclAllGather(own.data, whole.data, count_of(own), ncclFloat32, comm_,
                        handle_of(stream)));
  }

 private:
  nccl::Settings settings_;
  ncclComm_t comm_ = nullptr;
  Handle memory_;
};

}  // namespace

std::unique_ptr<Floor> make_nccl_floor(const World& world) {
  return std::make_unique<NcclFloor>(world);
}

}  // namespace ddp::bench

#else

namespace ddp::bench {
std::unique_ptr<Floor> make_nccl_floor(const World&) { return nullptr; }
}  // namespace ddp::bench

#endif
