#include "libddp/backends/backend.h"

#include <array>

#include "kernels/core/error.h"
#include "libddp/backends/local/local.h"
#include "libddp/backends/mpi/mpi.h"
#include "libddp/backends/nccl/nccl.h"
#include "libddp/backends/solo/solo.h"
#include "libddp/backends/tcp/tcp.h"

namespace ddp {
namespace {

#if DDP_HAS_MPI
constexpr bool kHasMpi = true;
#else
constexpr bool kHasMpi = false;
#endif
#if DDP_HAS_NCCL
constexpr bool kHasNccl = true;
#else
constexpr bool kHasNccl = false;
#endif

struct Backend {
  std::string_view name;
  bool is_built;
  std::unique_ptr<Communicator> (*make)(const World&, Traffic);
};

constexpr std::array kBackends = {
    Backend{"nccl", kHasNccl, make_nccl}, Backend{"mpi", kHasMpi, make_mpi},
    Backend{"tcp", true, make_tcp},       Backend{"local", true, make_local},
    Backend{"solo", true, make_solo},
};

std::string_view choose(const World& world) {
  if (world.size() == 1) return "solo";
  if (ranks_are_threads(world)) return "local";
  if (world.device().is_cuda()) return "nccl";
  return kHasMpi && world.mpi_communicator() ? "mpi" : "tcp";
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const World& world,
                                                const std::string& backend,
                                                Traffic traffic) {
  const std::string_view wanted = backend.empty() ? choose(world) : backend;
  std::string known;
  for (const Backend& entry : kBackends) {
    if (entry.name == wanted) return entry.make(world, traffic);
    known += concat(known.empty() ? "" : ", ", entry.name);
  }
  throw InvalidArgument(
      concat("unknown backend \"", wanted, "\"; known are ", known));
}

std::vector<std::string> available_backends() {
  std::vector<std::string> names;
  for (const Backend& entry : kBackends) {
    if (entry.is_built) names.emplace_back(entry.name);
  }
  return names;
}

}  // namespace ddp
