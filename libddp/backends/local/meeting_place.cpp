#include "libddp/backends/local/meeting_place.h"

#include <cstdint>
#include <thread>

#include "kernels/core/error.h"

namespace ddp {
namespace {

// Added to the counter of claims when rank 0 gives up: whoever then sees a
// count this large came too late and must not read the address.
constexpr std::int64_t kWithdrawn = std::int64_t{1} << 32;

std::vector<std::string> names_of_all(const World& world) {
  std::vector<std::string> names;
  for (int rank = 0; rank < world.size(); ++rank)
    names.push_back(world.describe(rank));
  return names;
}

// Whether the counter reached `count`; polls, since a Store cannot wait for
// a number and this happens once for each communicator.
bool wait_for_count(Store& store, const std::string& key, std::int64_t count,
                    Deadline deadline) {
  while (store.add(key, 0) < count) {
    if (deadline.has_passed()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

std::shared_ptr<LocalGroup> publish(const World& world,
                                    const std::string& prefix,
                                    Deadline deadline) {
  Store& store = world.store();
  const auto group = std::make_shared<LocalGroup>(names_of_all(world));
  store.set(prefix + "group",
            std::to_string(reinterpret_cast<std::uintptr_t>(&group)));
  const int others = world.size() - 1;
  if (wait_for_count(store, prefix + "taken", others, deadline)) return group;
  const std::int64_t claims =
      store.add(prefix + "claims", kWithdrawn) - kWithdrawn;
  // Those who claimed in time hold their copy within an instant.
  wait_for_count(store, prefix + "taken", claims, Deadline::never());
  throw Timeout(concat(world.describe(0), ": opening the local backend waited ",
                       deadline.seconds_given(), " s, and ", claims, " of ",
                       others, " other ranks came"));
}

std::shared_ptr<LocalGroup> find(const World& world, const std::string& prefix,
                                 Deadline deadline) {
  Store& store = world.store();
  const std::string address = store.get(prefix + "group", deadline);
  DDP_EXPECT(store.add(prefix + "claims", 1) < kWithdrawn, Timeout,
             world.describe(world.rank()),
             ": came too late to open the local backend; rank 0 has given up");
  const auto group = *reinterpret_cast<const std::shared_ptr<LocalGroup>*>(
      static_cast<std::uintptr_t>(std::stoull(address)));
  store.add(prefix + "taken", 1);
  return group;
}

}  // namespace

std::shared_ptr<LocalGroup> meet_in_memory(const World& world,
                                           Deadline deadline) {
  const std::int64_t call =
      world.store().add(concat("local/calls/", world.rank()), 1);
  const std::string prefix = concat("local/", call, "/");
  return world.rank() == 0 ? publish(world, prefix, deadline)
                           : find(world, prefix, deadline);
}

}  // namespace ddp
