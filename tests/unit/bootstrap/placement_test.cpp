#include <gmock/gmock.h>

#include "kernels/core/error.h"
#include "libddp/bootstrap/device_choice.h"
#include "libddp/bootstrap/identity.h"

namespace ddp {
namespace {

using ::testing::HasSubstr;

Identity identity(int rank, const std::string& boot_id,
                  const std::string& namespaces) {
  Identity result;
  result.rank = rank;
  result.world_size = 4;
  result.host = "node";
  result.pid = 100 + rank;
  result.boot_id = boot_id;
  result.namespaces = namespaces;
  return result;
}

TEST(Placement, CountsNodesByLowestRankWhereRanksAreCyclic) {
  const auto peers =
      place_on_nodes({identity(0, "b", ""), identity(1, "a", ""),
                      identity(2, "b", ""), identity(3, "a", "")});
  const std::vector<std::pair<int, int>> expected{
      {0, 0}, {1, 0}, {0, 1}, {1, 1}};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(peers[rank].node, expected[rank].first);
    EXPECT_EQ(peers[rank].local_rank, expected[rank].second);
  }
}

TEST(Placement, TellsContainersOfOneMachineApart) {
  const auto peers =
      place_on_nodes({identity(0, "a", "x"), identity(1, "a", "y")});
  EXPECT_EQ(peers[1].node, 1);
  EXPECT_EQ(peers[1].local_rank, 0);
}

TEST(Placement, TellsMachinesOfOneNameApart) {
  const auto peers =
      place_on_nodes({identity(0, "a", ""), identity(1, "b", "")});
  EXPECT_EQ(peers[0].host, peers[1].host);
  EXPECT_EQ(peers[1].node, 1);
}

TEST(Placement, PlacesAThousandRanks) {
  std::vector<Identity> all;
  for (int rank = 0; rank < 1024; ++rank)
    all.push_back(identity(rank, std::to_string(rank / 8), ""));
  const auto peers = place_on_nodes(all);
  EXPECT_EQ(peers.back().node, 127);
  EXPECT_EQ(peers.back().local_rank, 7);
}

TEST(Identity, SurvivesTheWire) {
  const auto self = Identity::of_process(3, 4);
  const auto copy = decode_identity(encode(self));
  EXPECT_EQ(describe(copy), describe(self));
  EXPECT_EQ(copy.boot_id, self.boot_id);
  EXPECT_EQ(copy.namespaces, self.namespaces);
  EXPECT_FALSE(self.boot_id.empty());
  EXPECT_THROW(decode_identity(encode(self).substr(0, 40)), CorruptData);
}

using Sets = std::vector<std::vector<std::string>>;

std::vector<DeviceView> views(const Sets& sets) {
  std::vector<DeviceView> all;
  for (const auto& set : sets)
    all.push_back({static_cast<int>(all.size()), set});
  return all;
}

std::vector<int> choose_all(const Sets& sets) {
  const auto node = views(sets);
  std::vector<int> chosen;
  for (const auto& view : node)
    chosen.push_back(choose_device(view.rank, view.rank,
                                   static_cast<int>(node.size()), node));
  return chosen;
}

TEST(DeviceChoice, TakesTheOnlyVisibleGpuWhateverTheLocalRank) {
  EXPECT_EQ(choose_all({{"a"}, {"b"}, {"c"}, {"d"}}),
            (std::vector<int>{0, 0, 0, 0}));
}

TEST(DeviceChoice, TakesTheLocalRankWhereAllGpusAreVisible) {
  EXPECT_EQ(choose_all({{"a", "b"}, {"a", "b"}}), (std::vector<int>{0, 1}));
}

TEST(DeviceChoice, TakesThePositionAmongTheTasksOfASharedSet) {
  EXPECT_EQ(choose_all({{"a", "b"}, {"c", "d"}, {"a", "b"}, {"c", "d"}}),
            (std::vector<int>{0, 0, 1, 1}));
}

TEST(DeviceChoice, NamesTheOptionWhenGpusDoNotSuffice) {
  try {
    choose_all({{"a", "b"}, {"a", "b"}, {"a", "b"}});
    ADD_FAILURE() << "three ranks on two GPUs were accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 2"));
    EXPECT_THAT(error.what(), HasSubstr("--gpu-bind=none"));
    EXPECT_THAT(error.what(), HasSubstr("--nproc-per-node=2"));
  }
}

Peer peer_on(int rank, const std::string& bus_id) {
  Peer peer;
  peer.rank = rank;
  peer.host = "node7";
  peer.pid = 4000 + rank;
  peer.bus_id = bus_id;
  peer.device = bus_id.empty() ? Device::cpu() : Device::cuda(0);
  return peer;
}

TEST(DeviceChoice, NamesBothRanksOnOneGpuAndItsBusId) {
  try {
    check_distinct_devices(
        {peer_on(0, "0000:1b:00.0"), peer_on(1, "0000:1b:00.0")}, {"m", "m"});
    ADD_FAILURE() << "two ranks on one GPU were accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 (node7, pid 4000)"));
    EXPECT_THAT(error.what(), HasSubstr("rank 1 (node7, pid 4001)"));
    EXPECT_THAT(error.what(), HasSubstr("0000:1b:00.0"));
  }
}

TEST(DeviceChoice, AllowsOneBusIdOnTwoMachinesAndManyRanksOnTheCpu) {
  EXPECT_NO_THROW(
      check_distinct_devices({peer_on(0, "x"), peer_on(1, "x")}, {"m", "n"}));
  EXPECT_NO_THROW(
      check_distinct_devices({peer_on(0, ""), peer_on(1, "")}, {"m", "m"}));
}

TEST(DeviceChoice, RefusesAWorldOfGpusAndCpus) {
  EXPECT_NO_THROW(check_equal_device_types({peer_on(0, "x"), peer_on(1, "y")}));
  EXPECT_THROW(check_equal_device_types({peer_on(0, "x"), peer_on(1, "")}),
               InvalidArgument);
}

}  // namespace
}  // namespace ddp
