// Ranks of the suite as processes with a GPU each: backend nccl.
#include "tests/conformance/process_ranks.h"

namespace ddp::conformance {
std::string backend_name() { return "nccl"; }
}  // namespace ddp::conformance

int main(int argc, char** argv) {
  ddp::InitOptions options;
  options.device = "cuda";
  return ddp::conformance::run_tests_in_world(argc, argv, options);
}
