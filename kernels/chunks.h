/// \file
/// Chunks: a list of runs cut into pieces of about equal work.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/dtype.h"
#include "kernels/update_table.h"

namespace ddp {

/// Elements [begin, begin + count) of one run. The first `head` of them are
/// to be walked one by one, so that the rest starts where vectors of
/// kVectorElements are aligned in every stream; head == count if there is no
/// such place.
struct Chunk {
  std::int64_t begin = 0;
  std::int32_t run = 0;
  std::int32_t count = 0;
  std::int32_t head = 0;
};

/// Elements that a GPU thread loads at once from each stream.
inline constexpr int kVectorElements = 4;
/// Groups of hyper-parameters that one launch takes as arguments.
inline constexpr int kGroupsPerLaunch = 32;

/// Chunks whose groups lie in [first_group, first_group + kGroupsPerLaunch).
struct ChunkBatch {
  std::int32_t first_group = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct ChunkList {
  std::vector<Chunk> chunks;
  std::vector<ChunkBatch> batches;  ///< those that have chunks
};

/// Cuts `runs`, ordered by batch of groups and else as they come. Depends on
/// lengths, groups and addresses' alignment alone, not on a device.
ChunkList cut(const std::vector<UpdateRun>& runs, DType weight_dtype,
              DType gradient_dtype);

}  // namespace ddp
