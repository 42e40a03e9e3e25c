/// \file
/// Staging: verified copies of shared files on each machine's own disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libddp/base/deadline.h"
#include "libddp/data/staging_group.h"

namespace ddp {

struct StagingOptions {
  /// A folder on a local disk; it is made if need be. Copies stay for the
  /// next job.
  std::string cache_dir = {};
  /// Bytes of that disk to leave free.
  std::uint64_t keep_free_bytes = std::uint64_t{1} << 30;
  /// Bounds the copying. The ranks that wait for it get ten seconds more, so
  /// that they hear why it failed.
  Milliseconds timeout = std::chrono::minutes(30);
};

/// Collective: one rank a machine copies `files` into its `cache_dir` while
/// the others wait; returns the copies' paths, in order, on every rank.
///
/// The lowest rank of a machine, under a file lock against other jobs, copies
/// to a temporary name, reads the copy back, compares its XXH3 checksum with
/// that of the source, writes the checksum beside it (`.xxh3`) and renames.
/// A copy whose source has the same size and modification time, and whose
/// bytes still have their checksum, is not made again. All machines must end
/// with the same checksums.
///
///     cache_dir / <checksum of the source's folder> / shard.bin
///                                                   / shard.bin.xxh3
///
/// Throws on *every* rank what one of them met: InvalidArgument if a source
/// is missing or the disk has too little room (with both numbers), CorruptData
/// if a copy differs from its source or two machines differ, Timeout, Error
/// with the system's reason if the disk cannot be written; PeerFailure if a
/// rank is gone. No partial copy is ever seen under its final name.
std::vector<std::string> stage_files(const std::vector<std::string>& files,
                                     const StagingOptions& options,
                                     const StagingGroup& group);

}  // namespace ddp
