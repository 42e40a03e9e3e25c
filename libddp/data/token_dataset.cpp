#include "libddp/data/token_dataset.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernels/core/error.h"

namespace ddp {
namespace {

void check(const std::vector<std::string>& paths,
           const TokenDatasetOptions& o) {
  DDP_EXPECT(!paths.empty(), InvalidArgument,
             "token data set: 0 files were given, it needs at least 1");
  DDP_EXPECT(o.sequence > 0, InvalidArgument, "token data set: sequence is ",
             o.sequence, ", but must be at least 1 token");
  DDP_EXPECT(o.stride >= 0, InvalidArgument, "token data set: stride is ",
             o.stride, ", but must be 0 (= sequence) or more");
  DDP_EXPECT(o.held_out >= 0 && o.held_out < 1, InvalidArgument,
             "token data set: held_out is ", o.held_out,
             ", but is a fraction from 0 to less than 1");
}

}  // namespace

TokenDataset::TokenDataset(const std::vector<std::string>& paths,
                           const TokenDatasetOptions& options)
    : options_(options) {
  check(paths, options);
  if (options_.stride == 0) options_.stride = options_.sequence;
  std::vector<TokenFile> files;
  std::int64_t total = 0;
  for (const std::string& path : paths)
    total += files.emplace_back(path, options.format).size();
  const auto edge = static_cast<std::int64_t>(static_cast<double>(total) *
                                              (1 - options.held_out));
  add_shards(std::move(files), options.split == Split::kHeldOut ? edge : 0,
             options.split == Split::kTrain ? edge : total);
  DDP_EXPECT(windows_ > 0, InvalidArgument, "token data set: none of ",
             paths.size(), " files (first: ", paths[0], ") has a run of ",
             options.sequence + 1, " tokens in this split, which holds ",
             tokens_, " tokens in all; use more data or a shorter sequence");
}

void TokenDataset::add_shards(std::vector<TokenFile> files,
                              std::int64_t split_begin,
                              std::int64_t split_end) {
  std::int64_t position = 0;
  for (TokenFile& file : files) {
    const std::int64_t begin =
        std::clamp<std::int64_t>(split_begin - position, 0, file.size());
    const std::int64_t end =
        std::clamp<std::int64_t>(split_end - position, 0, file.size());
    position += file.size();
    tokens_ += end - begin;
    const std::int64_t starts = end - begin - options_.sequence;
    if (starts <= 0) continue;  // no token follows the last one of a window
    shards_.push_back({std::move(file), begin, windows_});
    windows_ += (starts - 1) / options_.stride + 1;
  }
}

void TokenDataset::read(std::int64_t index, std::int32_t* x,
                        std::int32_t* y) const {
  const auto after = std::upper_bound(
      shards_.begin(), shards_.end(), index,
      [](std::int64_t i, const Shard& s) { return i < s.first_window; });
  const Shard& shard = *std::prev(after);
  const std::int64_t first =
      shard.begin + (index - shard.first_window) * options_.stride;
  shard.file.read(first, options_.sequence, x);
  shard.file.read(first + 1, options_.sequence, y);
}

}  // namespace ddp
