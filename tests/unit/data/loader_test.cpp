#include "libddp/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "kernels/core/error.h"

namespace ddp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sample i is the token i, followed by i + 1000.
class CountingSource : public SequenceSource {
 public:
  explicit CountingSource(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  std::int64_t sequence() const override { return 2; }
  void read(std::int64_t index, std::int32_t* x,
            std::int32_t* y) const override {
    ++reads;
    before_read(index);
    x[0] = x[1] = static_cast<std::int32_t>(index);
    y[0] = y[1] = static_cast<std::int32_t>(index + 1000);
  }

  std::function<void(std::int64_t)> before_read = [](std::int64_t) {};
  mutable std::atomic<int> reads = 0;

 private:
  std::int64_t size_;
};

std::vector<std::int32_t> first_tokens(const Batch& batch) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < batch.sequences; ++i)
    tokens.push_back(batch.x[i * batch.sequence]);
  return tokens;
}

std::vector<std::int32_t> pass(Loader& loader) {
  std::vector<std::int32_t> tokens;
  while (const auto batch = loader.next())
    for (const std::int32_t token : first_tokens(*batch))
      tokens.push_back(token);
  return tokens;
}

DistributedSampler sequential(std::int64_t size) {
  return DistributedSampler({.size = size, .shuffle = false});
}

TEST(Loader, YieldsBatchesOfXAndY) {
  const CountingSource source(5);
  Loader loader(source, sequential(5), {.batch = 2});
  const Batch batch = *loader.next();
  EXPECT_EQ(batch.sequences, 2);
  EXPECT_EQ(batch.sequence, 2);
  EXPECT_EQ(batch.tokens(), 4);
  EXPECT_THAT(std::vector(batch.x.get(), batch.x.get() + 4),
              ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(std::vector(batch.y.get(), batch.y.get() + 4),
              ElementsAre(1000, 1000, 1001, 1001));
}

TEST(Loader, EndsAPassOnceAndGoesOn) {
  const CountingSource source(5);
  Loader loader(source, sequential(5), {.batch = 2});
  EXPECT_THAT(pass(loader), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(loader.state(), (SamplerState{1, 0, 0}));
  EXPECT_THAT(pass(loader), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(loader.state().epoch, 2u);
}

TEST(Loader, ItsOrderIsTheSamplersWhateverTheThreadsDo) {
  const std::int64_t size = 200;
  DistributedSampler sampler({.size = size, .seed = 4});
  std::vector<std::int32_t> expected;
  while (const auto sample = sampler.next())
    expected.push_back(static_cast<std::int32_t>(sample->index));
  for (const int threads : {1, 2, 7}) {
    CountingSource source(size);
    source.before_read = [](std::int64_t index) {
      std::this_thread::sleep_for(std::chrono::microseconds(index * 37 % 300));
    };
    Loader loader(source, DistributedSampler({.size = size, .seed = 4}),
                  {.batch = 3, .threads = threads, .read_ahead = 5});
    EXPECT_EQ(pass(loader), expected) << threads << " threads";
  }
}

TEST(Loader, ReadsNoFurtherAheadThanAsked) {
  const CountingSource source(1000);
  Loader loader(source, sequential(1000), {.batch = 2, .read_ahead = 3});
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(source.reads, 2 * (1 + 3));
  EXPECT_GE(source.reads, 2);
}

TEST(Loader, DropsThePartialBatchIfAsked) {
  const CountingSource source(5);
  Loader loader(source, sequential(5), {.batch = 2, .keep_partial = false});
  EXPECT_THAT(pass(loader), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(loader.state(), (SamplerState{1, 0, 0}));
  EXPECT_THAT(pass(loader), ElementsAre(0, 1, 2, 3));
}

TEST(Loader, EndlessBatchesAreFullAcrossPasses) {
  const CountingSource source(5);
  Loader loader(source, sequential(5), {.batch = 3, .endless = true});
  EXPECT_THAT(first_tokens(*loader.next()), ElementsAre(0, 1, 2));
  EXPECT_THAT(first_tokens(*loader.next()), ElementsAre(3, 4, 0));
  EXPECT_EQ(loader.state(), (SamplerState{1, 1, 0}));
  EXPECT_THAT(first_tokens(*loader.next()), ElementsAre(1, 2, 3));
}

TEST(Loader, EvaluationSeesEveryIndexOnceOrMarked) {
  const CountingSource source(10);
  for (const Padding padding : {Padding::kNone, Padding::kRepeat}) {
    std::multiset<std::int32_t> genuine;
    int duplicates = 0;
    std::vector<std::size_t> lengths;
    for (int rank = 0; rank < 4; ++rank) {
      Loader loader(
          source,
          DistributedSampler(
              {.size = 10, .rank = rank, .world = 4, .padding = padding}),
          {.batch = 2});
      std::size_t length = 0;
      while (const auto batch = loader.next()) {
        length += batch->is_duplicate.size();
        const auto tokens = first_tokens(*batch);
        for (std::size_t i = 0; i < tokens.size(); ++i)
          if (batch->is_duplicate[i])
            ++duplicates;
          else
            genuine.insert(tokens[i]);
      }
      lengths.push_back(length);
    }
    EXPECT_THAT(genuine, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    EXPECT_EQ(duplicates, padding == Padding::kNone ? 0 : 2);
    if (padding == Padding::kNone)
      EXPECT_THAT(lengths, ElementsAre(3, 3, 2, 2));
    else
      EXPECT_THAT(lengths, ElementsAre(3, 3, 3, 3));
  }
}

TEST(Loader, ResumesWhereTheLastBatchEndedNotWhereReadingWas) {
  const CountingSource source(40);
  std::vector<std::int32_t> tokens;
  SamplerState state;
  {
    Loader loader(source, DistributedSampler({.size = 40, .seed = 2}),
                  {.batch = 4, .read_ahead = 6});
    for (int i = 0; i < 3; ++i) {
      const Batch batch = *loader.next();
      for (const auto token : first_tokens(batch)) tokens.push_back(token);
      state = batch.resume;
    }
    EXPECT_EQ(state, (SamplerState{0, 12, 2}));
    EXPECT_EQ(loader.state(), state);
  }
  DistributedSampler sampler({.size = 40});
  sampler.restore(state);
  Loader resumed(source, sampler, {.batch = 4});
  for (const auto token : pass(resumed)) tokens.push_back(token);
  EXPECT_EQ(tokens.size(), 40u);
  EXPECT_EQ(std::set(tokens.begin(), tokens.end()).size(), 40u);
}

TEST(Loader, StartAtDropsWhatWasReadAhead) {
  const CountingSource source(10);
  Loader loader(source, sequential(10), {.batch = 2});
  loader.next();
  loader.start_at({5, 6, 0});
  EXPECT_THAT(first_tokens(*loader.next()), ElementsAre(6, 7));
  EXPECT_EQ(loader.state(), (SamplerState{5, 8, 0}));
}

TEST(Loader, AnExplicitEpochWins) {
  const CountingSource source(6);
  const auto order_of = [&](std::uint64_t epoch) {
    DistributedSampler sampler({.size = 6});
    sampler.set_epoch(epoch);
    std::vector<std::int32_t> order;
    while (const auto sample = sampler.next())
      order.push_back(static_cast<std::int32_t>(sample->index));
    return order;
  };
  Loader loader(source, DistributedSampler({.size = 6}), {.batch = 2});
  EXPECT_EQ(pass(loader), order_of(0));
  loader.set_epoch(0);
  EXPECT_EQ(pass(loader), order_of(0));
  loader.set_epoch(9);
  EXPECT_EQ(pass(loader), order_of(9));
  EXPECT_EQ(pass(loader), order_of(10));
}

TEST(Loader, TheNextEpochMayBeSetBeforeTheEndIsTold) {
  const CountingSource source(4);
  Loader loader(source, sequential(4), {.batch = 2});
  loader.next();
  loader.next();
  loader.set_epoch(1);
  EXPECT_THAT(pass(loader), ElementsAre(0, 1, 2, 3));
}

TEST(Loader, RethrowsAThreadsErrorAtItsBatch) {
  CountingSource source(10);
  source.before_read = [](std::int64_t index) {
    if (index == 5) throw CorruptData("sample 5 is bad");
  };
  Loader loader(source, sequential(10), {.batch = 2, .threads = 3});
  EXPECT_THAT(first_tokens(*loader.next()), ElementsAre(0, 1));
  EXPECT_THAT(first_tokens(*loader.next()), ElementsAre(2, 3));
  EXPECT_THROW(loader.next(), CorruptData);
  EXPECT_THROW(loader.next(), CorruptData);
  loader.start_at({0, 6, 0});
  EXPECT_THAT(first_tokens(*loader.next()), ElementsAre(6, 7));
}

TEST(Loader, TimesOutWhenTheSourceHangs) {
  std::atomic<bool> is_released = false;
  CountingSource source(4);
  source.before_read = [&](std::int64_t) { is_released.wait(false); };
  Loader loader(source, sequential(4),
                {.batch = 2, .timeout = std::chrono::milliseconds(20)});
  try {
    loader.next();
    ADD_FAILURE();
  } catch (const Timeout& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 waited 0.02 s"));
  }
  is_released = true;
  is_released.notify_all();
}

TEST(Loader, StopsWhileReadingAhead) {
  for (int i = 0; i < 50; ++i) {
    const CountingSource source(1000);
    Loader loader(source, sequential(1000), {.batch = 2, .threads = 4});
    if (i % 2 == 0) loader.next();
  }
}

TEST(Loader, TakesMemoryFromTheAllocator) {
  const CountingSource source(4);
  std::atomic<int> alive = 0;
  std::vector<std::int64_t> counts;
  {
    Loader loader(source, sequential(4),
                  {.batch = 2,
                   .threads = 3,
                   .read_ahead = 1,
                   .allocator = [&](std::int64_t count) {
                     counts.push_back(count);
                     ++alive;
                     return std::shared_ptr<std::int32_t[]>(
                         new std::int32_t[count], [&](std::int32_t* memory) {
                           --alive;
                           delete[] memory;
                         });
                   }});
    const Batch batch = *loader.next();
    EXPECT_GE(alive, 2);
  }
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(counts[0], 4);
}

TEST(Loader, AnEmptySourceEndsEveryPassAtOnce) {
  const CountingSource source(0);
  Loader loader(source, sequential(0), {.batch = 2});
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.next());
}

std::string invalid_text(const DistributedSampler& sampler,
                         LoaderOptions options) {
  const CountingSource source(10);
  try {
    Loader loader(source, sampler, std::move(options));
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Loader, NamesBadArguments) {
  EXPECT_THAT(invalid_text(sequential(10), {.batch = 0}),
              HasSubstr("batch is 0"));
  EXPECT_THAT(invalid_text(sequential(10), {.threads = 0}),
              HasSubstr("threads is 0"));
  EXPECT_THAT(invalid_text(sequential(10), {.read_ahead = 0}),
              HasSubstr("read_ahead is 0"));
  EXPECT_THAT(invalid_text(sequential(9), {}),
              HasSubstr("9 samples, but the source has 10"));
  EXPECT_THAT(
      invalid_text(DistributedSampler(
                       {.size = 10, .world = 4, .padding = Padding::kNone}),
                   {.endless = true}),
      HasSubstr("10 samples on 4 ranks without padding"));
  EXPECT_THAT(invalid_text(DistributedSampler(
                               {.size = 10, .world = 11, .drop_last = true}),
                           {.endless = true}),
              HasSubstr("nothing to read"));
}

}  // namespace
}  // namespace ddp
