#include "libddp/base/environment.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "kernels/core/error.h"
#include "libddp/base/unique_handle.h"

namespace ddp {
namespace {

using ::testing::HasSubstr;

TEST(Environment, RemovesSurroundingBlanks) {
  const Environment environment({{"A", " \tx y\n"}, {"B", "  "}});
  EXPECT_EQ(environment.get("A"), "x y");
  EXPECT_EQ(environment.get("B"), std::nullopt);
  EXPECT_FALSE(environment.has("B"));
  EXPECT_FALSE(environment.has("C"));
}

TEST(Environment, ReadsIntegersAndQuotesWhatIsNone) {
  const Environment environment({{"A", " -7 "}, {"B", "7x"}});
  EXPECT_EQ(environment.get_int("A"), -7);
  EXPECT_EQ(environment.get_int("C"), std::nullopt);
  try {
    environment.get_int("B");
    ADD_FAILURE() << "7x was taken for a number";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("B=\"7x\""));
  }
}

TEST(Environment, CopiesTheProcessesVariables) {
  ::setenv("LIBDDP_TEST_VARIABLE", "a=b", 1);
  EXPECT_EQ(Environment::of_process().get("LIBDDP_TEST_VARIABLE"), "a=b");
  ::unsetenv("LIBDDP_TEST_VARIABLE");
}

int closed_handles = 0;
void count_close(int) { ++closed_handles; }

TEST(UniqueHandle, ClosesOnceAndOnlyWhatItOwns) {
  using Handle = UniqueHandle<int, count_close, -1>;
  closed_handles = 0;
  {
    Handle first(3);
    Handle second(std::move(first));
    EXPECT_FALSE(first);
    first = std::move(second);
    Handle given_away(4);
    EXPECT_EQ(given_away.release(), 4);
  }
  EXPECT_EQ(closed_handles, 1);
}

}  // namespace
}  // namespace ddp
