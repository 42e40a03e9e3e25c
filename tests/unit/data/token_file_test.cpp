#include "libddp/data/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/core/error.h"
#include "tests/support/temporary_folder.h"

namespace ddp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string llm_c(const std::vector<std::uint16_t>& tokens,
                  std::int32_t magic = 20240520, std::int32_t version = 1,
                  std::int64_t count = -1) {
  std::int32_t header[256] = {magic, version};
  header[2] = static_cast<std::int32_t>(count < 0 ? tokens.size() : count);
  std::string bytes(reinterpret_cast<char*>(header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(tokens.data()),
               tokens.size() * sizeof tokens[0]);
  return bytes;
}

std::vector<std::int32_t> read(const TokenFile& file, std::int64_t first,
                               std::int64_t count) {
  std::vector<std::int32_t> tokens(count);
  file.read(first, count, tokens.data());
  return tokens;
}

std::string corrupt_text(const std::string& path,
                         TokenFormat format = TokenFormat::kByName) {
  try {
    TokenFile file(path, format);
  } catch (const CorruptData& error) {
    return error.what();
  }
  return "";
}

TEST(TokenFile, ReadsEveryByteAsAToken) {
  const TemporaryFolder folder;
  const TokenFile file(folder.write("a.txt", "Az\xff\0q"));
  EXPECT_EQ(file.format(), TokenFormat::kBytes);
  EXPECT_EQ(file.size(), 3);  // the literal ends at \0
  EXPECT_THAT(read(file, 0, 3), ElementsAre(65, 122, 255));
  EXPECT_THAT(read(file, 1, 1), ElementsAre(122));
}

TEST(TokenFile, ReadsLlmCsFormat) {
  const TemporaryFolder folder;
  const TokenFile file(folder.write("a.bin", llm_c({50256, 0, 7, 65535})));
  EXPECT_EQ(file.format(), TokenFormat::kLlmC);
  EXPECT_EQ(file.size(), 4);
  EXPECT_THAT(read(file, 0, 4), ElementsAre(50256, 0, 7, 65535));
  EXPECT_THAT(read(file, 2, 2), ElementsAre(7, 65535));
}

TEST(TokenFile, AFormatThatIsGivenWinsOverTheName) {
  const TemporaryFolder folder;
  EXPECT_EQ(TokenFile(folder.write("a.bin", "abc"), TokenFormat::kBytes).size(),
            3);
  EXPECT_EQ(TokenFile(folder.write("b.tok", llm_c({1, 2})), TokenFormat::kLlmC)
                .size(),
            2);
}

TEST(TokenFile, RefusesWhatIsMissingOrNoFile) {
  const TemporaryFolder folder;
  EXPECT_THAT(corrupt_text(folder / "none"), HasSubstr("cannot be opened"));
  EXPECT_THAT(corrupt_text(folder / "none"), HasSubstr(folder / "none"));
  EXPECT_THAT(corrupt_text(folder.path()), HasSubstr("not a regular file"));
}

TEST(TokenFile, RefusesEmptyFiles) {
  const TemporaryFolder folder;
  EXPECT_THAT(corrupt_text(folder.write("a.txt", "")),
              HasSubstr("is empty (0 bytes)"));
  EXPECT_THAT(corrupt_text(folder.write("a.bin", "")),
              HasSubstr("is empty (0 bytes)"));
  EXPECT_THAT(corrupt_text(folder.write("b.bin", llm_c({}))),
              HasSubstr("says it holds 0 tokens"));
}

TEST(TokenFile, RefusesAShortHeader) {
  const TemporaryFolder folder;
  const std::string text =
      corrupt_text(folder.write("a.bin", llm_c({1, 2}).substr(0, 1023)));
  EXPECT_THAT(text, HasSubstr("has 1023 bytes"));
  EXPECT_THAT(text, HasSubstr("takes 1024"));
}

TEST(TokenFile, RefusesAnotherMagic) {
  const TemporaryFolder folder;
  const std::string text =
      corrupt_text(folder.write("a.bin", llm_c({1}, 20240801)));
  EXPECT_THAT(text, HasSubstr("begins with 20240801"));
  EXPECT_THAT(text, HasSubstr("20240520"));
}

TEST(TokenFile, RefusesAnotherVersion) {
  const TemporaryFolder folder;
  const std::string text =
      corrupt_text(folder.write("a.bin", llm_c({1}, 20240520, 7)));
  EXPECT_THAT(text, HasSubstr("version 7"));
  EXPECT_THAT(text, HasSubstr("version 1"));
}

TEST(TokenFile, RefusesACountThatDisagreesWithTheSize) {
  const TemporaryFolder folder;
  for (const std::int64_t count : {2, 4}) {
    const std::string text = corrupt_text(
        folder.write("a.bin", llm_c({1, 2, 3}, 20240520, 1, count)));
    EXPECT_THAT(text, HasSubstr("has 1030 bytes"));
    EXPECT_THAT(text, HasSubstr(concat(count, " tokens, which take ",
                                       1024 + 2 * count)));
  }
  EXPECT_THAT(
      corrupt_text(folder.write("b.bin", llm_c({1}, 20240520, 1, 0x80000000))),
      HasSubstr("holds -2147483648 tokens"));
  // An odd byte at the end is a cut as well.
  EXPECT_THAT(
      corrupt_text(folder.write("c.bin", llm_c({1, 2}).substr(0, 1027))),
      HasSubstr("has 1027 bytes"));
}

TEST(MatchFiles, SortsTheShardsByName) {
  const TemporaryFolder folder;
  for (const char* name : {"s_2.bin", "s_0.bin", "s_1.bin", "other"})
    folder.write(name, "x");
  EXPECT_THAT(
      match_files(folder / "s_*.bin"),
      ElementsAre(folder / "s_0.bin", folder / "s_1.bin", folder / "s_2.bin"));
  EXPECT_THAT(match_files(folder / "other"), ElementsAre(folder / "other"));
}

TEST(MatchFiles, QuotesAPatternThatMatchesNothing) {
  const TemporaryFolder folder;
  try {
    match_files(folder / "t_*.bin");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"" + (folder / "t_*.bin") + "\""));
    EXPECT_THAT(error.what(), HasSubstr("0 files match"));
  }
}

}  // namespace
}  // namespace ddp
