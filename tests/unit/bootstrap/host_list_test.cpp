#include "libddp/bootstrap/host_list.h"

#include <gmock/gmock.h>

#include <numeric>

#include "kernels/core/error.h"

namespace ddp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostList, ExpandsRangesAndSingleNumbers) {
  EXPECT_THAT(expand_host_list("n[1-3,7]"),
              ElementsAre("n1", "n2", "n3", "n7"));
}

TEST(HostList, TakesTheProductOfSeveralBrackets) {
  EXPECT_THAT(
      expand_host_list("rack[0-1]node[01-02]"),
      ElementsAre("rack0node01", "rack0node02", "rack1node01", "rack1node02"));
}

TEST(HostList, KeepsPlainNamesAmongLists) {
  EXPECT_THAT(expand_host_list("a,b[1-2],c"),
              ElementsAre("a", "b1", "b2", "c"));
}

TEST(HostList, KeepsZeroPaddingAndTextBehindTheBracket) {
  EXPECT_THAT(expand_host_list("n[098-101]-ib"),
              ElementsAre("n098-ib", "n099-ib", "n100-ib", "n101-ib"));
}

TEST(HostList, GrowsPastThePaddingWhereNumbersAreLonger) {
  EXPECT_THAT(expand_host_list("n[9-11]"), ElementsAre("n9", "n10", "n11"));
}

TEST(HostList, ExpandsThousandsOfNodesInOrder) {
  const auto hosts = expand_host_list("rack[00-31]n[0001-1024]");
  ASSERT_EQ(hosts.size(), 32u * 1024u);
  EXPECT_EQ(hosts.front(), "rack00n0001");
  EXPECT_EQ(hosts[1024], "rack01n0001");
  EXPECT_EQ(hosts.back(), "rack31n1024");
}

TEST(HostList, RefusesTextThatIsNoListAndQuotesIt) {
  for (const char* bad :
       {"n[1-", "n]1", "n[3-1]", "n[a]", "", "a,,b", "n[]", "n[0-99999999]"}) {
    try {
      expand_host_list(bad);
      ADD_FAILURE() << bad << " was accepted";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(concat('"', bad, '"')));
    }
  }
}

TEST(TasksPerNode, ExpandsRepeatsAndUnevenCounts) {
  EXPECT_THAT(expand_tasks_per_node("2(x2)"), ElementsAre(2, 2));
  EXPECT_THAT(expand_tasks_per_node("3,1"), ElementsAre(3, 1));
  EXPECT_THAT(expand_tasks_per_node("4(x2),1,2(x3)"),
              ElementsAre(4, 4, 1, 2, 2, 2));
}

TEST(TasksPerNode, CountsAThousandNodes) {
  const auto counts = expand_tasks_per_node("8(x1023),7");
  EXPECT_EQ(counts.size(), 1024u);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 8191);
}

TEST(TasksPerNode, RefusesTextThatIsNoList) {
  for (const char* bad : {"", "x", "2(x", "2(xy)", "2(x2", "(x2)", "-1"})
    EXPECT_THROW(expand_tasks_per_node(bad), InvalidArgument) << bad;
}

TEST(TaskIds, SplitsAtCommas) {
  EXPECT_THAT(split_task_ids("0,2,3"), ElementsAre(0, 2, 3));
  EXPECT_THROW(split_task_ids("0,,3"), InvalidArgument);
}

}  // namespace
}  // namespace ddp
