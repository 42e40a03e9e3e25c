#include "libddp/comm/communicator.h"

namespace ddp {

std::string_view name(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::kSum: return "sum";
    case ReduceOp::kMax: return "max";
    case ReduceOp::kMin: return "min";
    case ReduceOp::kAverage: return "average";
  }
  return "unknown";
}

}  // namespace ddp
