#include "examples/gpt/train/data.h"

#include "libddp/data/staging.h"

namespace gpt {
namespace {

/// The first windows of a data set, a whole number of global batches.
class WholeBatches final : public ddp::SequenceSource {
 public:
  WholeBatches(const ddp::TokenDataset& all, std::int64_t global_batch)
      : all_(all), size_(all.size() / global_batch * global_batch) {}
  std::int64_t size() const override { return size_; }
  std::int64_t sequence() const override { return all_.sequence(); }
  void read(std::int64_t index, std::int32_t* x,
            std::int32_t* y) const override {
    all_.read(index, x, y);
  }

 private:
  const ddp::TokenDataset& all_;
  std::int64_t size_;
};

std::vector<std::string> find_files(const std::string& pattern,
                                    const TrainOptions& options,
                                    const ddp::World& world) {
  std::vector<std::string> files = ddp::match_files(pattern);
  if (options.cache_dir.empty()) return files;
  return ddp::stage_files(files, {.cache_dir = options.cache_dir},
                          ddp::StagingGroup::of(world));
}

}  // namespace

TrainingData::TrainingData(const TrainOptions& options, const GptConfig& config,
                           const ddp::World& world) {
  const std::int64_t sequence = options.sequence;
  const bool own_part = options.val_data.empty();
  const auto files = find_files(options.data, options, world);
  const ddp::TokenFormat format = config.name == "tiny"
                                      ? ddp::TokenFormat::kByName
                                      : ddp::TokenFormat::kLlmC;
  train_ = std::make_unique<ddp::TokenDataset>(
      files, ddp::TokenDatasetOptions{
                 .sequence = sequence,
                 .split = own_part ? ddp::Split::kTrain : ddp::Split::kAll,
                 .format = format});
  held_out_ = std::make_unique<ddp::TokenDataset>(
      own_part ? files : find_files(options.val_data, options, world),
      ddp::TokenDatasetOptions{
          .sequence = sequence,
          .stride = sequence + 1,
          .split = own_part ? ddp::Split::kHeldOut : ddp::Split::kAll,
          .format = format});
  DDP_EXPECT(train_->size() >= options.global_batch, InvalidArgument,
             options.data, " has ", train_->size(), " sequences of ", sequence,
             " tokens to train on, but an update takes ", options.global_batch,
             "; give more data or a smaller batch");
  whole_batches_ =
      std::make_unique<WholeBatches>(*train_, options.global_batch);
  const ddp::DistributedSampler sampler({.size = whole_batches_->size(),
                                         .rank = world.rank(),
                                         .world = world.size(),
                                         .seed = options.seed});
  loader_ = std::make_unique<ddp::Loader>(
      *whole_batches_, sampler,
      ddp::LoaderOptions{.batch = options.batch,
                         .threads = options.threads,
                         .endless = true,
                         .keep_partial = false});
}

ddp::Batch TrainingData::next() { return *loader_->next(); }

}  // namespace gpt
