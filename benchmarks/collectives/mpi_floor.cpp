#include "benchmarks/collectives/floor.h"

#if DDP_HAS_MPI
#include <mpi.h>

namespace ddp::bench {
namespace {

int count_of(TensorView tensor) { return static_cast<int>(tensor.numel); }

// fp32 sums, in place, over the world.
class MpiFloor final : public Floor {
 public:
  explicit MpiFloor(MPI_Comm parent) { MPI_Comm_dup(parent, &comm_); }
  ~MpiFloor() override { MPI_Comm_free(&comm_); }

  std::string_view name() const override { return "MPI, one blocking call"; }
  void enroll(TensorView) override {}
  void all_reduce(TensorView tensor, StreamView) override {
    MPI_Allreduce(MPI_IN_PLACE, tensor.data, count_of(tensor), MPI_FLOAT,
                  MPI_SUM, comm_);
  }
  void reduce_scatter(TensorView whole, TensorView own, StreamView) override {
    // In place MPI leaves the result at the beginning, so out of place.
    MPI_Reduce_scatter_block(whole.data, own.data, count_of(own), MPI_FLOAT,
                             MPI_SUM, comm_);
  }
  void all_gather(TensorView own, TensorView whole, StreamView) override {
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, whole.data, count_of(own),
                  MPI_FLOAT, comm_);
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace

std::unique_ptr<Floor> make_mpi_floor(const World& world) {
  if (!world.mpi_communicator()) return nullptr;
  return std::make_unique<MpiFloor>(MPI_Comm_f2c(*world.mpi_communicator()));
}

}  // namespace ddp::bench

#else

namespace ddp::bench {
std::unique_ptr<Floor> make_mpi_floor(const World&) { return nullptr; }
}  // namespace ddp::bench

#endif
