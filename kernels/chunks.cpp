#include "kernels/chunks.h"

#include <algorithm>
#include <numeric>

namespace ddp {
namespace {

constexpr std::int64_t kLeastChunk = 8192;
/// More chunks than this cost the second stage of a norm more than they gain
/// in balance.
constexpr std::int64_t kMostChunks = 32768;

std::int64_t chunk_elements(const std::vector<UpdateRun>& runs) {
  std::int64_t total = 0;
  for (const UpdateRun& run : runs) total += run.numel;
  const std::int64_t share = total / kMostChunks + 1;
  const std::int64_t rounded =
      (share + kLeastChunk - 1) / kLeastChunk * kLeastChunk;
  return std::min<std::int64_t>(rounded, std::int64_t{1} << 30);
}

/// Elements before `pointer` is aligned for a vector; -1: never.
int elements_to_alignment(const void* pointer, std::size_t element) {
  const std::size_t vector =
      std::min<std::size_t>(16, element * kVectorElements);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(pointer) % vector;
  if (past == 0) return 0;
  if (past % element != 0) return -1;
  return static_cast<int>((vector - past) / element);
}

class CommonHead {
 public:
  /// `element` is the bytes of one element.
  void add(const void* pointer, std::size_t element) {
    if (pointer == nullptr || head_ == -1) return;
    const int head = elements_to_alignment(pointer, element);
    // A vector of four fp64 is two loads, aligned every two elements.
    const int period = element == 8 ? 2 : kVectorElements;
    if (head < 0) {
      head_ = -1;
    } else if (!any_) {
      head_ = head;
      period_ = period;
    } else {
      join(head, period);
    }
    any_ = true;
  }
  int get() const { return head_; }

 private:
  void join(int head, int period) {
    const int shorter = std::min(period, period_);
    if (head % shorter != head_ % shorter) {
      head_ = -1;
      return;
    }
    if (period > period_) head_ = head;
    period_ = std::max(period, period_);
  }

  int head_ = 0;
  int period_ = kVectorElements;
  bool any_ = false;
};

int head_of(const UpdateRun& run, DType weight_dtype, DType gradient_dtype) {
  const std::size_t state = weight_dtype == DType::kFloat64 ? 8 : 4;
  CommonHead head;
  for (int i = 0; i < run.weight.count; ++i)
    head.add(run.weight.data[i], size_of(weight_dtype));
  for (int i = 0; i < run.gradient.count; ++i)
    head.add(run.gradient.data[i], size_of(gradient_dtype));
  head.add(run.master, state);
  head.add(run.moment1, state);
  head.add(run.moment2, state);
  return head.get();
}

void cut_run(std::vector<Chunk>& chunks, std::int32_t index, std::int64_t numel,
             int head, std::int64_t elements) {
  std::int64_t begin = 0;
  while (begin < numel) {
    const std::int64_t lead = begin == 0 && head > 0 ? head : 0;
    const std::int64_t count = std::min(lead + elements, numel - begin);
    const std::int64_t scalars = head < 0 ? count : std::min(lead, count);
    chunks.push_back({begin, index, static_cast<std::int32_t>(count),
                      static_cast<std::int32_t>(scalars)});
    begin += count;
  }
}

}  // namespace

ChunkList cut(const std::vector<UpdateRun>& runs, DType weight_dtype,
              DType gradient_dtype) {
  std::vector<std::int32_t> order(runs.size());
  std::iota(order.begin(), order.end(), 0);
  const auto batch = [&](std::int32_t i) {
    return runs[static_cast<std::size_t>(i)].group / kGroupsPerLaunch;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return batch(a) < batch(b); });

  ChunkList list;
  const std::int64_t elements = chunk_elements(runs);
  for (const std::int32_t i : order) {
    const UpdateRun& run = runs[static_cast<std::size_t>(i)];
    if (run.numel == 0) continue;
    const auto begin = static_cast<std::int64_t>(list.chunks.size());
    const std::int32_t group = batch(i) * kGroupsPerLaunch;
    if (list.batches.empty() || list.batches.back().first_group != group)
      list.batches.push_back({group, begin, begin});
    cut_run(list.chunks, i, run.numel,
            head_of(run, weight_dtype, gradient_dtype), elements);
    list.batches.back().end = static_cast<std::int64_t>(list.chunks.size());
  }
  return list;
}

}  // namespace ddp
