#include "libddp/reduce/bucket_layout.h"

#include <algorithm>

#include "kernels/core/error.h"

namespace ddp {
namespace {

constexpr int kWantedBuckets = 12;
constexpr std::size_t kLeastBucketBytes = std::size_t{64} << 10;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

ElementRange intersect(ElementRange a, ElementRange b) noexcept {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

BucketLayout::BucketLayout(std::span<const std::int64_t> numels, int world,
                           std::int64_t bucket_elements, bool separate)
    : world_(world), parameters_(numels.size()), bucket_of_(numels.size(), -1) {
  DDP_EXPECT(world >= 1, InvalidArgument,
             "a bucket layout needs a world of at least 1 rank, not ", world);
  const auto close = [&] {
    if (buckets_.empty()) return;
    size_ = buckets_.back().range.end =
        round_up(size_, world_ * kAlignElements);
  };
  for (int index = static_cast<int>(numels.size()) - 1; index >= 0; --index) {
    const std::int64_t numel = numels[index];
    DDP_EXPECT(numel >= 0, InvalidArgument, "parameter ", index, " has ", numel,
               " elements");
    const bool fits =
        !buckets_.empty() && !separate &&
        size_ + numel - buckets_.back().range.begin <= bucket_elements;
    if (!fits) {
      close();
      buckets_.push_back({{size_, size_}, {}});
    }
    buckets_.back().parameters.push_back(index);
    bucket_of_[index] = static_cast<int>(buckets_.size()) - 1;
    parameters_[index] = {size_, size_ + numel};
    size_ = round_up(size_ + numel, kAlignElements);
  }
  close();
}

ElementRange BucketLayout::slice(int bucket, int rank) const {
  const ElementRange range = buckets_.at(bucket).range;
  const std::int64_t share = range.size() / world_;
  return {range.begin + rank * share, range.begin + (rank + 1) * share};
}

std::int64_t bucket_elements(std::int64_t total_elements,
                             std::size_t element_bytes,
                             std::size_t wanted_bytes) {
  const auto wanted = static_cast<std::int64_t>(wanted_bytes / element_bytes);
  const auto least =
      static_cast<std::int64_t>(kLeastBucketBytes / element_bytes);
  return std::max<std::int64_t>(
      1, std::min(wanted, std::max(total_elements / kWantedBuckets, least)));
}

}  // namespace ddp
