/// \file
/// BucketLayout: where each gradient lies. Arithmetic only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ddp {

/// Every parameter starts on a multiple of this many elements, and every
/// slice of a bucket is a multiple of it: 256 bytes of 2-byte elements.
inline constexpr std::int64_t kAlignElements = 128;

/// Elements [begin, end).
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const noexcept { return end - begin; }
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

/// The part that both ranges share; empty ranges have size() 0.
ElementRange intersect(ElementRange a, ElementRange b) noexcept;

/// How one arena, a contiguous run of elements, is divided into parameters
/// and buckets:
///
///     | p9 | pad | p8 | pad || p7 | pad ||| p6 ...
///     '-- bucket 0, W slices -''- bucket 1 -'
///
/// Parameters lie in reverse registration order, since backward finishes the
/// last ones first. A bucket ends on a multiple of world * kAlignElements, so
/// that its W slices are equal and aligned, whatever parameter edges say.
class BucketLayout {
 public:
  struct Bucket {
    ElementRange range;
    std::vector<int> parameters;  ///< in the order in which they lie
  };

  BucketLayout() = default;
  /// `numels[i]` elements for parameter i. A bucket takes parameters while it
  /// stays within `bucket_elements`, and at least one. `separate` gives each
  /// parameter a bucket of its own. Throws InvalidArgument unless world >= 1.
  BucketLayout(std::span<const std::int64_t> numels, int world,
               std::int64_t bucket_elements, bool separate = false);

  /// Elements of the whole arena, padding included.
  std::int64_t size() const noexcept { return size_; }
  int world() const noexcept { return world_; }
  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }
  /// Where parameter i lies, without padding.
  ElementRange parameter(int index) const { return parameters_.at(index); }
  /// The bucket that holds parameter i.
  int bucket_of(int index) const { return bucket_of_.at(index); }
  /// The part of a bucket that `rank` owns.
  ElementRange slice(int bucket, int rank) const;

 private:
  std::int64_t size_ = 0;
  int world_ = 1;
  std::vector<Bucket> buckets_;
  std::vector<ElementRange> parameters_;
  std::vector<int> bucket_of_;
};

/// Elements of a bucket: `wanted_bytes`, or less where the whole is small, so
/// that a dozen buckets can leave before backward ends, but never under
/// 64 KiB, where latency rules.
std::int64_t bucket_elements(std::int64_t total_elements,
                             std::size_t element_bytes,
                             std::size_t wanted_bytes);

}  // namespace ddp
