// More than 2^31 elements: a count that no int holds, of one byte each, so
// that a count of bytes in its place would not pass either.
#include <gmock/gmock.h>

#include <algorithm>

#include "libddp/device/stream.h"
#include "tests/conformance/values.h"

namespace ddp::conformance {
namespace {

constexpr std::int64_t kNumel = (std::int64_t{1} << 31) + 1;
constexpr std::int64_t kSample = 4096;

// 1 everywhere, and distinct values round the places where an int turns.
void fill(TensorView tensor, int rank, StreamView stream) {
  std::vector<std::int8_t> block(std::size_t{1} << 24, 1);
  const auto block_numel = static_cast<std::int64_t>(block.size());
  for (std::int64_t begin = 0; begin < tensor.numel; begin += block_numel) {
    const std::int64_t count = std::min(block_numel, tensor.numel - begin);
    copy_bytes(tensor.slice(begin, count).data, block.data(),
               static_cast<std::size_t>(count), stream);
  }
  std::vector<std::int8_t> edge(kSample);
  for (std::int64_t i = 0; i < kSample; ++i)
    edge[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(i % 50 + rank);
  for (const std::int64_t begin :
       {std::int64_t{0}, kNumel / 2 - kSample / 2, kNumel - kSample}) {
    copy_bytes(tensor.slice(begin, kSample).data, edge.data(), edge.size(),
               stream);
  }
  synchronize(stream);
}

std::vector<std::int8_t> read(TensorView tensor, std::int64_t begin,
                              std::int64_t count, StreamView stream) {
  std::vector<std::int8_t> host(static_cast<std::size_t>(count));
  copy_bytes(host.data(), tensor.slice(begin, count).data, host.size(), stream);
  synchronize(stream);
  return host;
}

TEST(LargeCounts, AllReduceOfMoreThanTwoToThe31BytesReachesEveryElement) {
  run_on_ranks(2, [](Rank& rank) {
    const Buffer buffer = Buffer::allocate(static_cast<std::size_t>(kNumel),
                                           rank.communicator.device());
    const TensorView tensor = buffer.view(0, kNumel, DType::kInt8);
    fill(tensor, rank.rank(), rank.stream);
    rank.communicator.all_reduce(tensor, ReduceOp::kSum, rank.stream)
        .wait(Deadline::in(std::chrono::minutes(8)));
    for (const std::int64_t begin :
         {std::int64_t{0}, kNumel / 2 - kSample / 2, kNumel - kSample}) {
      const auto edge = read(tensor, begin, kSample, rank.stream);
      for (std::int64_t i = 0; i < kSample; ++i)
        ASSERT_EQ(edge[static_cast<std::size_t>(i)], 2 * (i % 50) + 1)
            << "element " << begin + i;
    }
    // All others, in blocks between the samples.
    const std::vector<std::int8_t> twos(std::size_t{1} << 24, 2);
    for (std::int64_t begin = kSample;
         begin + static_cast<std::int64_t>(twos.size()) < kNumel / 2 - kSample;
         begin += static_cast<std::int64_t>(twos.size())) {
      for (const std::int64_t half : {std::int64_t{0}, kNumel / 2}) {
        ASSERT_EQ(read(tensor, begin + half,
                       static_cast<std::int64_t>(twos.size()), rank.stream),
                  twos)
            << "block at " << begin + half;
      }
    }
  });
}

}  // namespace
}  // namespace ddp::conformance
