#include "libddp/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/core/error.h"
#include "tests/support/temporary_folder.h"

namespace ddp {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const std::string kFixture = FIXTURE_DIR "/from_python.safetensors";

// The tensors of fixtures/make_fixture.py.
struct FixtureData {
  float weight[6] = {1.5f, -2.0f, 3.25f, 0.0f, 1e-3f, 7.0f};
  double bias[2] = {0.5, -1.0};
  std::uint16_t half[3] = {0x3c00, 0x4000, 0xb800};
  std::uint16_t bf[3] = {0x3f80, 0x4000, 0xbf00};
  std::int8_t i8[2] = {-1, 2};
  std::uint8_t u8 = 255;
  std::int32_t i32 = -5;
  std::int64_t i64 = std::int64_t{1} << 40;
  std::uint32_t u32 = 4294967295u;
  std::uint64_t u64 = 7;
  float scalar = 4.0f;

  std::vector<SafetensorsInput> tensors() const {
    return {{"b.weight", DType::kFloat32, {2, 3}, weight},
            {"a.bias", DType::kFloat64, {2}, bias},
            {"half", DType::kFloat16, {3}, half},
            {"bf", DType::kBFloat16, {3}, bf},
            {"i8", DType::kInt8, {2}, i8},
            {"u8", DType::kUInt8, {1}, &u8},
            {"i32", DType::kInt32, {1}, &i32},
            {"i64", DType::kInt64, {1}, &i64},
            {"u32", DType::kUInt32, {1}, &u32},
            {"u64", DType::kUInt64, {1}, &u64},
            {"scalar", DType::kFloat32, {}, &scalar},
            {"empty", DType::kFloat32, {0, 3}, nullptr}};
  }
};

// A file with this header text and this many zero bytes of tensors.
std::string file_bytes(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header +
         std::string(data_bytes, '\0');
}

std::string corrupt_text(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.safetensors", bytes);
  try {
    SafetensorsFile file(path);
  } catch (const CorruptData& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
    return error.what();
  }
  return "it was accepted";
}

std::string corrupt_header(const std::string& header, std::size_t data = 0) {
  return corrupt_text(file_bytes(header, data));
}

template <typename E, typename Call>
std::string text_of(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Safetensors, WritesByteForByteWhatThePythonPackageWrites) {
  const TemporaryFolder folder;
  const FixtureData data;
  const std::string path = folder / "ours.safetensors";
  write_safetensors(path, data.tensors(), {{"format", "pt"}});
  EXPECT_EQ(read_file(path), read_file(kFixture));
}

TEST(Safetensors, ReadsWhatThePythonPackageWrote) {
  const SafetensorsFile file(kFixture);
  const FixtureData data;
  EXPECT_THAT(file.metadata(), ElementsAre(Pair("format", "pt")));
  EXPECT_EQ(file.tensors().size(), 12u);
  for (const SafetensorsInput& expected : data.tensors()) {
    const SafetensorsEntry& entry = file.at(expected.name);
    EXPECT_EQ(entry.dtype(), expected.dtype) << expected.name;
    EXPECT_EQ(entry.shape, expected.shape) << expected.name;
    ASSERT_EQ(entry.bytes.size(), entry.numel() * size_of(expected.dtype));
    if (!entry.bytes.empty())
      EXPECT_EQ(
          std::memcmp(entry.bytes.data(), expected.data, entry.bytes.size()), 0)
          << expected.name;
  }
}

TEST(Safetensors, ReadChecksDtypeAndShape) {
  const SafetensorsFile file(kFixture);
  const std::int64_t shape[] = {2, 3}, transposed[] = {3, 2};
  float values[6];
  file.read("b.weight", DType::kFloat32, shape, values);
  EXPECT_THAT(values, ElementsAre(1.5f, -2.0f, 3.25f, 0.0f, 1e-3f, 7.0f));
  EXPECT_THAT(text_of<InvalidArgument>([&] {
                file.read("b.weight", DType::kFloat32, transposed, values);
              }),
              HasSubstr("is F32[2, 3], but F32[3, 2] is asked for"));
  EXPECT_THAT(text_of<InvalidArgument>([&] {
                file.read("b.weight", DType::kBFloat16, shape, values);
              }),
              HasSubstr("is F32[2, 3], but BF16[2, 3] is asked for"));
  EXPECT_THAT(text_of<InvalidArgument>(
                  [&] { file.read("w", DType::kFloat32, shape, values); }),
              HasSubstr("no tensor \"w\" among its 12"));
}

TEST(Safetensors, RoundTripsNamesMetadataAndNoTensorsAtAll) {
  const TemporaryFolder folder;
  const float value = 2;
  const std::string name = "layer \"0\"\\\n\xc3\xa9";
  write_safetensors(folder / "a", {{{name, DType::kFloat32, {1, 1}, &value}}},
                    {{"k\"", "v\n"}, {"b", ""}});
  const SafetensorsFile file(folder / "a");
  EXPECT_TRUE(file.has(name));
  EXPECT_THAT(file.metadata(), ElementsAre(Pair("b", ""), Pair("k\"", "v\n")));
  write_safetensors(folder / "b", {});
  EXPECT_THAT(SafetensorsFile(folder / "b").tensors(), IsEmpty());
}

TEST(Safetensors, AFailedWriteLeavesTheOldFile) {
  const TemporaryFolder folder;
  const float value = 2;
  const std::string path = folder.write("a", "old");
  const SafetensorsInput one{"t", DType::kFloat32, {1}, &value};
  const std::vector<SafetensorsInput> twice = {one, one};
  EXPECT_THAT(text_of<InvalidArgument>([&] { write_safetensors(path, twice); }),
              HasSubstr("two tensors are named \"t\""));
  for (const char* name : {"", "__metadata__"}) {
    const std::vector<SafetensorsInput> bad = {
        {name, DType::kFloat32, {1}, &value}};
    EXPECT_THROW(write_safetensors(path, bad), InvalidArgument);
  }
  const std::vector<SafetensorsInput> negative = {
      {"t", DType::kFloat32, {-2}, &value}};
  EXPECT_THAT(
      text_of<InvalidArgument>([&] { write_safetensors(path, negative); }),
      HasSubstr("\"t\" has an extent of -2"));
  const std::vector<SafetensorsInput> binary = {
      {"\xff", DType::kFloat32, {1}, &value}};
  EXPECT_THROW(write_safetensors(path, binary), InvalidArgument);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_THAT(text_of<Error>([&] { write_safetensors(folder / "no/f", {}); }),
              HasSubstr("cannot be created: No such file"));
}

TEST(Safetensors, LeavesNoTemporaryFile) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", FixtureData().tensors());
  int files = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(folder.path()))
    ++files;
  EXPECT_EQ(files, 1);
}

TEST(Safetensors, EveryCutOfAFileIsFound) {
  const std::string whole = read_file(kFixture);
  for (std::size_t size = 0; size < whole.size(); ++size)
    ASSERT_NE(corrupt_text(whole.substr(0, size)), "it was accepted") << size;
  EXPECT_THAT(corrupt_text(whole + "x"),
              AllOf(HasSubstr("holds 84 bytes"), HasSubstr("names 83")));
}

TEST(Safetensors, ADamagedHeaderNeverCrashes) {
  const std::string whole = read_file(kFixture);
  const TemporaryFolder folder;
  for (std::size_t at = 0; at < 8 + 728; ++at)
    for (const char byte : {'\0', '9', '"', '[', '}'}) {
      std::string bytes = whole;
      bytes[at] = byte;
      const std::string path = folder.write("x", bytes);
      try {
        SafetensorsFile file(path);  // a letter of a name may change
      } catch (const CorruptData&) {
      }
    }
}

TEST(Safetensors, RefusesAnAbsurdHeaderLength) {
  EXPECT_THAT(corrupt_text("abc"), HasSubstr("has 3 bytes"));
  EXPECT_THAT(corrupt_text(std::string(8, '\xff')),
              AllOf(HasSubstr("18446744073709551615 bytes"),
                    HasSubstr("at most 100000000")));
  const std::uint64_t length = 100;
  EXPECT_THAT(
      corrupt_text(std::string(reinterpret_cast<const char*>(&length), 8) +
                   "{}"),
      AllOf(HasSubstr("has 100 bytes"), HasSubstr("only 2 follow")));
}

TEST(Safetensors, RefusesWhatIsNoHeader) {
  EXPECT_THAT(corrupt_header(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(corrupt_header("{\"a\":"), HasSubstr("not valid JSON"));
  EXPECT_THAT(corrupt_header("[1]"), HasSubstr("no JSON object but array"));
  EXPECT_THAT(corrupt_header("{\"a\":" + std::string(100'000, '[')),
              HasSubstr("nests deeper than 8"));
  EXPECT_THAT(corrupt_header(R"({"a":3})"),
              HasSubstr("\"a\" has no \"dtype\""));
  EXPECT_THAT(corrupt_header(R"({"__metadata__":{"a":1}})"),
              HasSubstr("metadata \"a\" is no string but 1"));
  EXPECT_THAT(corrupt_header(R"({"__metadata__":[]})"),
              HasSubstr("no map but array"));
}

TEST(Safetensors, RefusesNamesThatComeTwice) {
  const std::string tensor =
      R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_THAT(corrupt_header("{\"a\":" + tensor + ",\"a\":" + tensor + "}", 1),
              HasSubstr("has \"a\" twice"));
  EXPECT_THAT(corrupt_header(R"({"a":{"dtype":"U8","dtype":"I8","shape":[0],)"
                             R"("data_offsets":[0,0]}})"),
              HasSubstr("has \"dtype\" twice"));
}

TEST(Safetensors, RefusesUnknownTypes) {
  EXPECT_THAT(
      corrupt_header(
          R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4),
      HasSubstr("\"a\" is of unknown dtype \"F31\""));
  EXPECT_THAT(corrupt_header(
                  R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("unknown dtype 7"));
}

TEST(Safetensors, CarriesTypesItDoesNotComputeWith) {
  const TemporaryFolder folder;
  const SafetensorsFile file(folder.write(
      "a",
      file_bytes(R"({"m":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})",
                 3)));
  EXPECT_EQ(file.at("m").numel(), 3);
  EXPECT_THAT(text_of<InvalidArgument>([&] { (void)file.at("m").dtype(); }),
              HasSubstr("dtype BOOL"));
}

TEST(Safetensors, RefusesSizesThatDisagree) {
  EXPECT_THAT(
      corrupt_header(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
      AllOf(HasSubstr("\"a\" has 4 bytes"), HasSubstr("(F32) take 8")));
  EXPECT_THAT(
      corrupt_header(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3),
      AllOf(HasSubstr("bytes 0 to 4"), HasSubstr("holds 3 bytes")));
  EXPECT_THAT(
      corrupt_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[2,1]}})",
                     3),
      HasSubstr("bytes 2 to 1"));
  EXPECT_THAT(
      corrupt_header(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 3),
      HasSubstr("3 data_offsets, but must have 2"));
  EXPECT_THAT(
      corrupt_header(
          R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1),
      HasSubstr("\"shape\" holds -1"));
  EXPECT_THAT(
      corrupt_header(
          R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1),
      HasSubstr("\"shape\" holds 1.0"));
  EXPECT_THAT(corrupt_header(
                  R"({"a":{"dtype":"U8","shape":3,"data_offsets":[0,1]}})", 1),
              HasSubstr("\"shape\" is no list but 3"));
  EXPECT_THAT(
      corrupt_header(R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],)"
                     R"("data_offsets":[0,8]}})",
                     8),
      HasSubstr("more than 2^63 bytes"));
}

TEST(Safetensors, RefusesOverlapsAndHoles) {
  const auto two = [](const char* second) {
    return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
           R"("b":{"dtype":"U8","shape":[2],"data_offsets":)" +
           std::string(second) + "}}";
  };
  EXPECT_THAT(corrupt_header(two("[1,3]"), 3),
              AllOf(HasSubstr("\"b\" begins at byte 1"),
                    HasSubstr("ends at 2 (they overlap)")));
  EXPECT_THAT(corrupt_header(two("[3,5]"), 5),
              AllOf(HasSubstr("\"b\" begins at byte 3"),
                    HasSubstr("ends at 2 (a hole)")));
  EXPECT_THAT(corrupt_header(two("[2,4]"), 6),
              AllOf(HasSubstr("holds 6 bytes"), HasSubstr("names 4")));
}

}  // namespace
}  // namespace ddp
