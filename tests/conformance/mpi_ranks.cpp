// Ranks of the suite as processes under mpirun, on the CPU: backend mpi.
#include "tests/conformance/process_ranks.h"

namespace ddp::conformance {
std::string backend_name() { return "mpi"; }
}  // namespace ddp::conformance

int main(int argc, char** argv) {
  ddp::InitOptions options;
  options.device = "cpu";
  return ddp::conformance::run_tests_in_world(argc, argv, options);
}
