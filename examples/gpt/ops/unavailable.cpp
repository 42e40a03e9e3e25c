// Stands in for the CUDA operations in a build without them.
#include "examples/gpt/ops/ops.h"

namespace gpt {

std::unique_ptr<Ops> make_cuda_ops(ddp::DType, ddp::StreamView) {
  throw ddp::Unavailable(
      "this program was built without CUDA: build with -DLIBDDP_CUDA=ON, or "
      "run it with --device cpu");
}

}  // namespace gpt
