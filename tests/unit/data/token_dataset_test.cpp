#include "libddp/data/token_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/core/error.h"
#include "tests/support/temporary_folder.h"

namespace ddp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::pair<std::string, std::string> window(const TokenDataset& data,
                                           std::int64_t index) {
  std::vector<std::int32_t> x(data.sequence()), y(data.sequence());
  data.read(index, x.data(), y.data());
  return {std::string(x.begin(), x.end()), std::string(y.begin(), y.end())};
}

TokenDatasetOptions options(std::int64_t sequence, Split split = Split::kAll,
                            double held_out = 0.05) {
  return {.sequence = sequence, .split = split, .held_out = held_out};
}

std::string invalid_text(const std::vector<std::string>& paths,
                         const TokenDatasetOptions& o) {
  try {
    TokenDataset data(paths, o);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(TokenDataset, YIsTheTokenAfterX) {
  const TemporaryFolder folder;
  const TokenDataset data({folder.write("a", "abcdefghij")}, options(3));
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.tokens(), 10);
  EXPECT_THAT(window(data, 0), Pair("abc", "bcd"));
  EXPECT_THAT(window(data, 1), Pair("def", "efg"));
  EXPECT_THAT(window(data, 2), Pair("ghi", "hij"));
}

TEST(TokenDataset, TheLastWindowNeedsATokenAfterIt) {
  const TemporaryFolder folder;
  EXPECT_EQ(TokenDataset({folder.write("a", "abcdef")}, options(3)).size(), 1);
  EXPECT_EQ(TokenDataset({folder.write("b", "abcdefg")}, options(3)).size(), 2);
}

TEST(TokenDataset, WindowsDoNotCrossShards) {
  const TemporaryFolder folder;
  const TokenDataset data({folder.write("0", "abcde"), folder.write("1", "XY"),
                           folder.write("2", "fghijk")},
                          options(2));
  EXPECT_EQ(data.tokens(), 13);
  ASSERT_EQ(data.size(), 4);
  EXPECT_THAT(window(data, 0), Pair("ab", "bc"));
  EXPECT_THAT(window(data, 1), Pair("cd", "de"));
  EXPECT_THAT(window(data, 2), Pair("fg", "gh"));
  EXPECT_THAT(window(data, 3), Pair("hi", "ij"));
}

TEST(TokenDataset, AStrideMakesWindowsOverlap) {
  const TemporaryFolder folder;
  const TokenDataset data({folder.write("a", "abcdef")},
                          {.sequence = 3, .stride = 1});
  ASSERT_EQ(data.size(), 3);
  EXPECT_THAT(window(data, 2), Pair("cde", "def"));
}

TEST(TokenDataset, HoldsTheLastTokensOut) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "abcdefghijklmnopqrst");
  const TokenDataset train({path}, options(2, Split::kTrain, 0.25));
  const TokenDataset held_out({path}, options(2, Split::kHeldOut, 0.25));
  EXPECT_EQ(train.tokens(), 15);
  EXPECT_EQ(held_out.tokens(), 5);
  EXPECT_EQ(train.size(), 7);
  EXPECT_THAT(window(train, 6), Pair("mn", "no"));
  ASSERT_EQ(held_out.size(), 2);
  EXPECT_THAT(window(held_out, 0), Pair("pq", "qr"));
  EXPECT_THAT(window(held_out, 1), Pair("rs", "st"));
}

TEST(TokenDataset, TheSplitCutsThroughAShard) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = {folder.write("0", "abcd"),
                                          folder.write("1", "efghij"),
                                          folder.write("2", "klmnop")};
  const TokenDataset train(paths, options(1, Split::kTrain, 0.5));
  const TokenDataset held_out(paths, options(1, Split::kHeldOut, 0.5));
  EXPECT_EQ(train.tokens() + held_out.tokens(), 16);
  ASSERT_EQ(train.size(), 6);
  EXPECT_THAT(window(train, 5), Pair("g", "h"));
  ASSERT_EQ(held_out.size(), 6);
  EXPECT_THAT(window(held_out, 0), Pair("i", "j"));
  EXPECT_THAT(window(held_out, 1), Pair("k", "l"));
}

TEST(TokenDataset, RefusesDataShorterThanOneWindow) {
  const TemporaryFolder folder;
  const std::string text = invalid_text(
      {folder.write("a", "abc"), folder.write("b", "de")}, options(3));
  EXPECT_THAT(text, HasSubstr("a run of 4 tokens"));
  EXPECT_THAT(text, HasSubstr("holds 5 tokens"));
  EXPECT_THAT(text, HasSubstr(folder / "a"));
  EXPECT_THAT(invalid_text({folder / "a"}, options(1, Split::kHeldOut, 0.0)),
              HasSubstr("holds 0 tokens"));
}

TEST(TokenDataset, NamesBadOptions) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "abc");
  EXPECT_THAT(invalid_text({}, options(1)), HasSubstr("0 files"));
  EXPECT_THAT(invalid_text({path}, options(0)), HasSubstr("sequence is 0"));
  EXPECT_THAT(invalid_text({path}, {.sequence = 1, .stride = -1}),
              HasSubstr("stride is -1"));
  EXPECT_THAT(invalid_text({path}, options(1, Split::kAll, 1.0)),
              HasSubstr("held_out is 1"));
}

TEST(TokenDataset, RefusesACorruptShardAmongGoodOnes) {
  const TemporaryFolder folder;
  EXPECT_THROW(TokenDataset({folder.write("a", "abc"), folder.write("b", "")},
                            options(1)),
               CorruptData);
}

}  // namespace
}  // namespace ddp
