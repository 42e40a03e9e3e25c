#include "kernels/core/error.h"
#include "libddp/backends/nccl/nccl.h"

namespace ddp {

std::unique_ptr<Communicator> make_nccl(const World&, Traffic) {
  throw Unavailable(
      "backend nccl is not in this build; install CUDA and NCCL (pip install "
      "nvidia-nccl-cu13, or apt-get install libnccl-dev) and configure with "
      "-DLIBDDP_CUDA=ON, and -DNCCL_ROOT=... where NCCL is not found");
}

}  // namespace ddp
