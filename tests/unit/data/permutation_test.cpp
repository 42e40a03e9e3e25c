#include "libddp/data/permutation.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <vector>

namespace ddp {
namespace {

TEST(Permutation, MapsEverySizeOntoItself) {
  for (std::int64_t size = 1; size <= 300; ++size) {
    const Permutation order(size, 7, 3);
    std::vector<bool> seen(size);
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t image = order(i);
      ASSERT_GE(image, 0);
      ASSERT_LT(image, size);
      ASSERT_FALSE(seen[image]) << "size " << size << " index " << i;
      seen[image] = true;
    }
  }
}

TEST(Permutation, MapsAMillionOntoItself) {
  const std::int64_t size = 1'000'003;
  const Permutation order(size, 1, 0);
  std::vector<bool> seen(size);
  for (std::int64_t i = 0; i < size; ++i) seen[order(i)] = true;
  for (std::int64_t i = 0; i < size; ++i) ASSERT_TRUE(seen[i]) << i;
}

TEST(Permutation, IsTheSameOnEveryMachine) {
  // Written down once: a change would break resuming of running jobs.
  const Permutation order(10, 0, 0);
  std::vector<std::int64_t> images;
  for (int i = 0; i < 10; ++i) images.push_back(order(i));
  EXPECT_EQ(images, (std::vector<std::int64_t>{0}));
}

TEST(Permutation, ReachesAllOrdersOfThreeAboutEquallyOften) {
  std::map<std::array<std::int64_t, 3>, int> counts;
  const int draws = 60'000;
  for (int seed = 0; seed < draws; ++seed) {
    const Permutation order(3, seed, 0);
    ++counts[{order(0), order(1), order(2)}];
  }
  ASSERT_EQ(counts.size(), 6u);
  // Chi-square with 5 degrees of freedom; 20.5 is its 99.9 % point.
  double chi_square = 0;
  for (const auto& [order, count] : counts)
    chi_square += (count - 1e4) * (count - 1e4) / 1e4;
  EXPECT_LT(chi_square, 20.5);
}

TEST(Permutation, SendsAnIndexEverywhereAboutEquallyOften) {
  // 64 places, 64,000 epochs: 63 degrees of freedom, 99.9 % point 103.4.
  std::array<int, 64> counts{};
  for (int epoch = 0; epoch < 64'000; ++epoch)
    ++counts[Permutation(64, 11, epoch)(5)];
  double chi_square = 0;
  for (const int count : counts)
    chi_square += (count - 1e3) * (count - 1e3) / 1e3;
  EXPECT_LT(chi_square, 103.4);
}

TEST(Permutation, KeepsNeighboursApart) {
  // In a random order about one of 100,000 pairs stays adjacent twice.
  const std::int64_t size = 100'000;
  const Permutation order(size, 5, 0);
  int adjacent = 0;
  for (std::int64_t i = 0; i + 1 < size; ++i)
    adjacent += std::abs(order(i) - order(i + 1)) == 1;
  EXPECT_LT(adjacent, 12);
}

TEST(Permutation, DiffersBySeedAndByStream) {
  const Permutation a(1000, 1, 0), b(1000, 2, 0), c(1000, 1, 1);
  int same_seed = 0, same_stream = 0;
  for (int i = 0; i < 1000; ++i) {
    same_seed += a(i) == b(i);
    same_stream += a(i) == c(i);
  }
  EXPECT_LT(same_seed, 10);
  EXPECT_LT(same_stream, 10);
}

TEST(Permutation, TakesTheLargestSizes) {
  for (const std::int64_t size :
       {std::int64_t{100'000'000'000}, std::int64_t{1} << 62,
        std::numeric_limits<std::int64_t>::max()}) {
    const Permutation order(size, 3, 1);
    std::set<std::int64_t> images;
    for (std::int64_t i = 0; i < 1000; ++i) {
      images.insert(order(i));
      images.insert(order(size - 1 - i));
    }
    EXPECT_EQ(images.size(), 2000u);
    EXPECT_GE(*images.begin(), 0);
    EXPECT_LT(*images.rbegin(), size);
  }
}

}  // namespace
}  // namespace ddp
