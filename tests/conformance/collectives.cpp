// The table of what every backend must do: each operation, type, reduction
// and count, in place and out of place.
#include <gmock/gmock.h>

#include <mutex>
#include <set>

#include "tests/conformance/values.h"

namespace ddp::conformance {
namespace {

// Ordinary, none, one, fewer than ranks, not divisible, large.
constexpr std::int64_t kCounts[] = {0, 1, 7, 64, 1'000'003};
// Of one slice, where every rank has one.
constexpr std::int64_t kSliceCounts[] = {0, 1, 7, 64, 125'001};

// Remembers what ran, so that a combination that was skipped is a failure.
class Table {
 public:
  void ran(int rank, DType dtype, ReduceOp op, std::int64_t count,
           bool in_place) {
    const std::lock_guard lock(mutex_);
    const bool is_new = seen_
                            .insert(concat(rank, ' ', name(dtype), ' ',
                                           name(op), ' ', count, ' ', in_place))
                            .second;
    EXPECT_TRUE(is_new);
  }
  std::size_t size() const { return seen_.size(); }

 private:
  std::mutex mutex_;
  std::set<std::string> seen_;
};

void expect_equal(const Array& array,
                  const std::function<double(std::int64_t)>& expected,
                  const std::string& what) {
  std::string text;
  EXPECT_EQ(array.differences(expected, &text), 0) << what << ": " << text;
}

class Collectives : public testing::TestWithParam<int> {
 protected:
  // Ranks of a world of this size that run in this process.
  static int ranks_here(int size) {
    int count = 0;
    std::mutex mutex;
    run_on_ranks(size, [&](Rank&) {
      const std::lock_guard lock(mutex);
      ++count;
    });
    return count;
  }
  static Deadline soon() { return Deadline::in(std::chrono::seconds(60)); }
};

// Reductions that are defined: 4 for each floating type, 3 for each integer.
constexpr std::size_t kReductions = 4 * 4 + 6 * 3;
constexpr std::size_t kTypes = std::size(kDTypes);

template <typename F>
void for_each_reduction(const F& f) {
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : kReduceOps) {
      if (is_defined(op, dtype)) f(dtype, op);
    }
  }
}

TEST_P(Collectives, AllReduceCombinesEveryElementOfEveryRank) {
  Table table;
  run_on_ranks(GetParam(), [&](Rank& rank) {
    for_each_reduction([&](DType dtype, ReduceOp op) {
      const Periodic expected(
          [&](auto i) { return reduced_value(op, dtype, rank.size(), i); });
      const Periodic mine([&](auto i) { return value_of(rank.rank(), i); });
      for (const std::int64_t count : kCounts) {
        Array array(rank, count, dtype);
        array.fill(mine);
        rank.communicator.all_reduce(array.view(), op, rank.stream)
            .block(rank.stream);
        expect_equal(array, expected, concat("all_reduce ", name(op)));
        table.ran(rank.rank(), dtype, op, count, true);
      }
    });
  });
  EXPECT_EQ(table.size(),
            ranks_here(GetParam()) * kReductions * std::size(kCounts));
}

TEST_P(Collectives, ReduceScatterGivesEachRankItsReducedSlice) {
  Table table;
  run_on_ranks(GetParam(), [&](Rank& rank) {
    for_each_reduction([&](DType dtype, ReduceOp op) {
      const Periodic mine([&](auto i) { return value_of(rank.rank(), i); });
      for (const std::int64_t count : kSliceCounts) {
        const std::int64_t begin = count * rank.rank();
        const Periodic expected([&](auto i) {
          return reduced_value(op, dtype, rank.size(), begin + i);
        });
        Array input(rank, count * rank.size(), dtype);
        Array output(rank, count, dtype);
        input.fill(mine);
        output.fill([](auto) { return 99; });
        rank.communicator
            .reduce_scatter(input.view(), output.view(), op, rank.stream)
            .block(rank.stream);
        expect_equal(output, expected, concat("reduce_scatter ", name(op)));
        expect_equal(input, mine, "input of reduce_scatter");
        table.ran(rank.rank(), dtype, op, count, false);
        rank.communicator
            .reduce_scatter(input.view(), input.view().slice(begin, count), op,
                            rank.stream)
            .block(rank.stream);
        copy_bytes(output.view().data, input.view().slice(begin, count).data,
                   output.view().bytes(), rank.stream);
        expect_equal(output, expected, "reduce_scatter in place");
        table.ran(rank.rank(), dtype, op, count, true);
      }
    });
  });
  EXPECT_EQ(table.size(),
            ranks_here(GetParam()) * kReductions * 2 * std::size(kSliceCounts));
}

TEST_P(Collectives, AllGatherGivesEveryRankAllSlicesInRankOrder) {
  Table table;
  run_on_ranks(GetParam(), [&](Rank& rank) {
    for (const DType dtype : kDTypes) {
      const Periodic mine([&](auto i) { return value_of(rank.rank(), i); });
      for (const std::int64_t count : kSliceCounts) {
        const auto expected = [&](std::int64_t i) -> double {
          return value_of(static_cast<int>(i / count), i % count % kPeriod);
        };
        Array input(rank, count, dtype);
        Array output(rank, count * rank.size(), dtype);
        input.fill(mine);
        output.fill([](auto) { return 99; });
        rank.communicator.all_gather(input.view(), output.view(), rank.stream)
            .block(rank.stream);
        expect_equal(output, expected, "all_gather");
        table.ran(rank.rank(), dtype, ReduceOp::kSum, count, false);
        output.fill([](auto) { return 99; });
        const TensorView own = output.view().slice(count * rank.rank(), count);
        copy_bytes(own.data, input.view().data, own.bytes(), rank.stream);
        rank.communicator.all_gather(own, output.view(), rank.stream)
            .block(rank.stream);
        expect_equal(output, expected, "all_gather in place");
        table.ran(rank.rank(), dtype, ReduceOp::kSum, count, true);
      }
    }
  });
  EXPECT_EQ(table.size(),
            ranks_here(GetParam()) * kTypes * 2 * std::size(kSliceCounts));
}

TEST_P(Collectives, BroadcastGivesEveryRankWhatTheRootHas) {
  Table table;
  run_on_ranks(GetParam(), [&](Rank& rank) {
    for (const DType dtype : kDTypes) {
      for (const std::int64_t count : kCounts) {
        const int root = static_cast<int>(count % rank.size());
        const Periodic mine([&](auto i) { return value_of(rank.rank(), i); });
        const Periodic expected([&](auto i) { return value_of(root, i); });
        Array array(rank, count, dtype);
        array.fill(mine);
        rank.communicator.broadcast(array.view(), root, rank.stream)
            .block(rank.stream);
        expect_equal(array, expected, "broadcast");
        table.ran(rank.rank(), dtype, ReduceOp::kSum, count, true);
      }
    }
  });
  EXPECT_EQ(table.size(), ranks_here(GetParam()) * kTypes * std::size(kCounts));
}

TEST_P(Collectives, AllToAllTransposesSlicesAndRanks) {
  Table table;
  run_on_ranks(GetParam(), [&](Rank& rank) {
    for (const DType dtype : kDTypes) {
      for (const std::int64_t count : kSliceCounts) {
        const Periodic mine([&](auto i) { return value_of(rank.rank(), i); });
        const auto expected = [&](std::int64_t i) -> double {
          return value_of(static_cast<int>(i / count),
                          (count * rank.rank() + i % count) % kPeriod);
        };
        Array input(rank, count * rank.size(), dtype);
        Array output(rank, count * rank.size(), dtype);
        input.fill(mine);
        rank.communicator.all_to_all(input.view(), output.view(), rank.stream)
            .block(rank.stream);
        expect_equal(output, expected, "all_to_all");
        table.ran(rank.rank(), dtype, ReduceOp::kSum, count, false);
      }
    }
  });
  EXPECT_EQ(table.size(),
            ranks_here(GetParam()) * kTypes * std::size(kSliceCounts));
}

// Round a ring: each rank sends to the next and receives from the one before.
// Even ranks send first, since operations of a communicator run in order; in
// an odd ring the last and the first both send, and rank 1 unties it.
TEST_P(Collectives, RecvGetsWhatSendSent) {
  Table table;
  run_on_ranks(GetParam(), [&](Rank& rank) {
    const int next = (rank.rank() + 1) % rank.size();
    const int last = (rank.rank() + rank.size() - 1) % rank.size();
    for (const DType dtype : kDTypes) {
      for (const std::int64_t count : kCounts) {
        const Periodic mine([&](auto i) { return value_of(rank.rank(), i); });
        const Periodic expected([&](auto i) { return value_of(last, i); });
        Array outgoing(rank, count, dtype);
        Array incoming(rank, count, dtype);
        outgoing.fill(mine);
        const auto send = [&] {
          return rank.communicator.send(outgoing.view(), next, rank.stream);
        };
        const auto recv = [&] {
          return rank.communicator.recv(incoming.view(), last, rank.stream);
        };
        if (rank.size() == 1) {
          EXPECT_THROW((void)send(), InvalidArgument);
          EXPECT_THROW((void)recv(), InvalidArgument);
        } else {
          const bool sends_first = rank.rank() % 2 == 0;
          const Work first = sends_first ? send() : recv();
          const Work second = sends_first ? recv() : send();
          first.block(rank.stream);
          second.block(rank.stream);
          expect_equal(incoming, expected, "recv");
        }
        table.ran(rank.rank(), dtype, ReduceOp::kSum, count, false);
      }
    }
  });
  EXPECT_EQ(table.size(), ranks_here(GetParam()) * kTypes * std::size(kCounts));
}

TEST_P(Collectives, OperationsInFlightCompleteInTheOrderOfIssue) {
  run_on_ranks(GetParam(), [&](Rank& rank) {
    constexpr int kOperations = 20;
    std::vector<Array> arrays;
    std::vector<Work> works;
    for (int k = 0; k < kOperations; ++k) {
      arrays.emplace_back(rank, 1000 * k + 1, DType::kFloat32);
      arrays.back().fill([&](auto) { return rank.rank() + k; });
    }
    for (Array& array : arrays) {
      works.push_back(rank.communicator.all_reduce(array.view(), ReduceOp::kSum,
                                                   rank.stream));
    }
    works.back().wait(soon());
    const int ranks = rank.size() * (rank.size() - 1) / 2;
    for (int k = 0; k < kOperations; ++k) {
      EXPECT_TRUE(works[k].is_complete());
      works[k].wait(soon());
      expect_equal(
          arrays[k], [&](auto) { return ranks + k * rank.size(); }, "order");
    }
  });
}

TEST_P(Collectives, NoRankPassesABarrierBeforeAllHaveReachedIt) {
  run_on_ranks(GetParam(), [&](Rank& rank) {
    for (int round = 0; round < 20; ++round) {
      const std::string key = concat("barrier-test/", GetParam(), "/", round);
      rank.world.store().add(key, 1);
      rank.communicator.barrier(rank.stream).wait(soon());
      EXPECT_EQ(rank.world.store().add(key, 0), rank.size());
    }
  });
}

TEST_P(Collectives, SplitGroupsByColorAndOrdersByKey) {
  run_on_ranks(GetParam(), [&](Rank& rank) {
    // Two groups in reverse order of rank.
    const int color = rank.rank() % 2;
    const auto part = rank.communicator.split(color, -rank.rank());
    ASSERT_NE(part, nullptr);
    const int members = (rank.size() + 1 - color) / 2;
    EXPECT_EQ(part->size(), members);
    EXPECT_EQ(part->rank(), members - 1 - rank.rank() / 2);
    Array array(rank, 3, DType::kInt64);
    array.fill([&](auto) { return rank.rank(); });
    part->all_reduce(array.view(), ReduceOp::kSum, rank.stream)
        .block(rank.stream);
    double expected = 0;
    for (int other = color; other < rank.size(); other += 2) expected += other;
    expect_equal(
        array, [&](auto) { return expected; }, "sum of a part");
    Array whole(rank, 1, DType::kInt64);
    whole.fill([](auto) { return 1; });
    rank.communicator.all_reduce(whole.view(), ReduceOp::kSum, rank.stream)
        .block(rank.stream);
    expect_equal(
        whole, [&](auto) { return rank.size(); }, "sum of the whole");
  });
}

TEST_P(Collectives, SplitGivesNoCommunicatorForANegativeColor) {
  run_on_ranks(GetParam(), [&](Rank& rank) {
    const auto part = rank.communicator.split(rank.rank() == 0 ? -1 : 7, 0);
    if (rank.rank() == 0) {
      EXPECT_EQ(part, nullptr);
      return;
    }
    ASSERT_NE(part, nullptr);
    EXPECT_EQ(part->size(), rank.size() - 1);
    EXPECT_EQ(part->rank(), rank.rank() - 1);
    part->barrier(rank.stream).wait(soon());
  });
}

TEST_P(Collectives, AllocateGivesAlignedMemoryThatCollectivesAccept) {
  run_on_ranks(GetParam(), [&](Rank& rank) {
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{4}, std::size_t{1} << 20}) {
      const Buffer buffer = rank.communicator.allocate(bytes);
      EXPECT_EQ(buffer.bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0u);
      zero_bytes(buffer.data(), bytes, rank.stream);
      rank.communicator
          .all_reduce(buffer.view(0, static_cast<std::int64_t>(bytes / 4),
                                  DType::kFloat32),
                      ReduceOp::kSum, rank.stream)
          .wait(soon());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Collectives, testing::ValuesIn(world_sizes()));

}  // namespace
}  // namespace ddp::conformance
