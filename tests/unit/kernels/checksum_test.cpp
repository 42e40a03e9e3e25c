// Linked with the CPU and with the GPU; machine() says which is tested.
#include <algorithm>
#include <set>

#include "kernels/elementwise.h"
#include "tests/unit/kernels/array.h"

namespace ddp::test {
namespace {

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A second writing, byte by byte.
std::uint64_t expected(const std::vector<unsigned char>& bytes,
                       std::uint64_t seed) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;
  std::uint64_t sum = mixed(bytes.size() ^ mixed(seed + kGolden));
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < 8 && i + j < bytes.size(); ++j)
      word |= std::uint64_t{bytes[i + j]} << (8 * j);
    sum += mixed(word + (i / 8 + 1) * kGolden + seed);
  }
  return sum;
}

std::uint64_t computed(const std::vector<unsigned char>& bytes,
                       std::uint64_t seed, std::size_t offset = 0) {
  const auto memory = machine().allocate(bytes.size() + offset + 1);
  char* data = static_cast<char*>(memory.get()) + offset;
  machine().write(data, bytes.data(), bytes.size());
  const Value<std::uint64_t> result(123);
  checksum({data, static_cast<std::int64_t>(bytes.size()), DType::kUInt8,
            machine().stream().device},
           seed, result.get(), machine().stream());
  return result.value();
}

std::vector<unsigned char> random_bytes(std::size_t n) {
  std::mt19937 engine(5);
  std::vector<unsigned char> bytes(n);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(engine());
  return bytes;
}

TEST(ChecksumSmall, EqualsItsPlainWritingAtAnyLengthAndAlignment) {
  for (const std::size_t n : {0, 1, 7, 8, 9, 15, 16, 17, 100, 4096, 10'007})
    for (const std::size_t offset : {0, 1, 2, 4, 8})
      EXPECT_EQ(computed(random_bytes(n), 99, offset),
                expected(random_bytes(n), 99))
          << n << " bytes at " << offset;
}

TEST(ChecksumLarge, EqualsItsPlainWriting) {
  const auto bytes = random_bytes(5'000'003);
  EXPECT_EQ(computed(bytes, 1), expected(bytes, 1));
  EXPECT_EQ(computed(bytes, 1, 2), expected(bytes, 1));
}

TEST(ChecksumSmall, SeesEveryBitOfAWordAndEveryExchangeOfWords) {
  const auto bytes = random_bytes(64);
  std::set<std::uint64_t> sums = {computed(bytes, 0)};
  for (std::size_t bit = 0; bit < 64; ++bit) {
    auto changed = bytes;
    changed[8 + bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
    EXPECT_TRUE(sums.insert(computed(changed, 0)).second) << bit;
  }
  auto exchanged = bytes;
  std::swap_ranges(exchanged.begin(), exchanged.begin() + 8,
                   exchanged.begin() + 8);
  EXPECT_TRUE(sums.insert(computed(exchanged, 0)).second);
  EXPECT_TRUE(sums.insert(computed(bytes, 1)).second);
}

TEST(ChecksumSmall, CountsTrailingZeros) {
  std::vector<unsigned char> bytes(8, 0);
  std::set<std::uint64_t> sums;
  for (std::size_t n = 0; n <= 24; ++n) {
    bytes.resize(n);
    EXPECT_TRUE(sums.insert(computed(bytes, 0)).second) << n;
  }
}

}  // namespace
}  // namespace ddp::test
