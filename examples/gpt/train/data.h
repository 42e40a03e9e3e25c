/// \file
/// The data of a run: training batches in one order for all worlds, and the
/// held-out windows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "examples/gpt/train/options.h"
#include "libddp/bootstrap/world.h"
#include "libddp/data/loader.h"
#include "libddp/data/token_dataset.h"

namespace gpt {

/// Training reads windows of T + 1 tokens that start T apart, shuffled by
/// (seed, epoch). Update s takes entries s G to (s + 1) G of that order, G
/// being the global batch; rank r of W takes every W-th of them. So a batch is
/// a function of (seed, s) whatever W is. What does not fill a global batch at
/// the end of a pass is left out.
///
/// Held-out windows of T + 1 tokens do not overlap at all.
class TrainingData {
 public:
  /// Collective if options.cache_dir is set. Throws what TokenDataset and
  /// stage_files() throw, and InvalidArgument if the data has fewer windows
  /// than a global batch.
  TrainingData(const TrainOptions& options, const GptConfig& config,
               const ddp::World& world);

  /// The next micro-batch of this rank.
  ddp::Batch next();
  const ddp::TokenDataset& train() const { return *train_; }
  const ddp::TokenDataset& held_out() const { return *held_out_; }

 private:
  std::unique_ptr<ddp::TokenDataset> train_;
  std::unique_ptr<ddp::TokenDataset> held_out_;
  std::unique_ptr<ddp::SequenceSource> whole_batches_;
  std::unique_ptr<ddp::Loader> loader_;
};

}  // namespace gpt
