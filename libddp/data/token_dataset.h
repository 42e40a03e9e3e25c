/// \file
/// TokenDataset: shards of tokens as samples of a language model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libddp/data/token_file.h"

namespace ddp {

/// What a Loader reads from. Members are const and called by several threads.
class SequenceSource {
 public:
  virtual ~SequenceSource() = default;
  /// Number of samples.
  virtual std::int64_t size() const = 0;
  /// Tokens of one sample.
  virtual std::int64_t sequence() const = 0;
  /// Writes sequence() tokens to each of `x` and `y`, where y[t] is the token
  /// that follows x[t]. REQUIRES: 0 <= index < size().
  virtual void read(std::int64_t index, std::int32_t* x,
                    std::int32_t* y) const = 0;
};

/// Which part of the tokens a data set serves.
enum class Split { kAll, kTrain, kHeldOut };

struct TokenDatasetOptions {
  /// Tokens of one sample, T.
  std::int64_t sequence = 1024;
  /// Tokens between the starts of neighbouring samples. 0: `sequence`, every
  /// token is predicted about once a pass; less makes them overlap.
  std::int64_t stride = 0;
  Split split = Split::kAll;
  /// The last part of all tokens, kept from training: a fraction in [0, 1).
  double held_out = 0.05;
  TokenFormat format = TokenFormat::kByName;
};

/// The shards in the given order are one sequence of tokens, which is split
/// and then cut into windows of T + 1 tokens. No window crosses a shard's
/// edge, since what follows there is another text:
///
///     | shard 0: w0 w1 w2 rest | shard 1: w3 w4 ... | held out: w0 w1 ... |
///
/// Immutable; any thread may read.
class TokenDataset final : public SequenceSource {
 public:
  /// Opens and checks all shards. Throws CorruptData as TokenFile does, and
  /// InvalidArgument for bad options or if no shard has a whole window.
  TokenDataset(const std::vector<std::string>& paths,
               const TokenDatasetOptions& options);

  std::int64_t size() const override { return windows_; }
  std::int64_t sequence() const override { return options_.sequence; }
  void read(std::int64_t index, std::int32_t* x,
            std::int32_t* y) const override;

  /// Tokens in this split, whether in a window or not.
  std::int64_t tokens() const noexcept { return tokens_; }
  const TokenDatasetOptions& options() const noexcept { return options_; }

 private:
  struct Shard {
    TokenFile file;
    std::int64_t begin = 0;         // first token of the file in this split
    std::int64_t first_window = 0;  // its number in the data set
  };

  void add_shards(std::vector<TokenFile> files, std::int64_t split_begin,
                  std::int64_t split_end);

  TokenDatasetOptions options_;
  std::vector<Shard> shards_;
  std::int64_t tokens_ = 0;
  std::int64_t windows_ = 0;
};

}  // namespace ddp
