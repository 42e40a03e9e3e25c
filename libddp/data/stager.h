/// \file
/// Stager: copies files into a cache folder and verifies them; one process's
/// part of staging, without communication.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libddp/base/deadline.h"

namespace ddp {

struct StagedFile {
  std::string source;
  std::string path;  ///< of the copy
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
  bool was_copied = false;  ///< false: a good copy was there already
};

/// Makes sure that `cache_dir` holds a verified copy of each file. Waits for
/// another process that stages into the same folder. Errors as stage_files().
std::vector<StagedFile> stage_on_this_machine(
    const std::vector<std::string>& files, const std::string& cache_dir,
    std::uint64_t keep_free_bytes, Deadline deadline);

/// Where the copy of `source` lies. The source's folder is part of it, since
/// two folders may hold files of one name.
std::string staged_path(const std::string& cache_dir,
                        const std::string& source);

}  // namespace ddp
