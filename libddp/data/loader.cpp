#include "libddp/data/loader.h"

#include <utility>

#include "kernels/core/error.h"

namespace ddp {
namespace {

void check(const SequenceSource& source, const DistributedSampler& sampler,
           const LoaderOptions& o) {
  const SamplerOptions& s = sampler.options();
  DDP_EXPECT(o.batch > 0, InvalidArgument, "loader: batch is ", o.batch,
             ", but must be at least 1 sequence");
  DDP_EXPECT(o.threads > 0, InvalidArgument, "loader: threads is ", o.threads,
             ", but must be at least 1");
  DDP_EXPECT(o.read_ahead > 0, InvalidArgument, "loader: read_ahead is ",
             o.read_ahead, ", but must be at least 1 batch");
  DDP_EXPECT(s.size == source.size(), InvalidArgument,
             "loader: the sampler draws from ", s.size,
             " samples, but the source has ", source.size());
  if (!o.endless) return;
  DDP_EXPECT(sampler.is_even(), InvalidArgument, "loader: endless passes over ",
             s.size, " samples on ", s.world,
             " ranks without padding would part the ranks' epochs; use "
             "Padding::kRepeat or drop_last");
  const std::string notice = sampler.notice();
  DDP_EXPECT(notice.empty(), InvalidArgument, "loader: endless: ", notice);
}

}  // namespace

Loader::Loader(const SequenceSource& source, const DistributedSampler& sampler,
               LoaderOptions options)
    : source_(source),
      options_((check(source, sampler, options), std::move(options))),
      state_(sampler.state()),
      sampler_(sampler) {
  start_threads();
}

Loader::~Loader() { stop_threads(); }

std::optional<Batch> Loader::next() {
  std::unique_lock lock(mutex_);
  const auto front_is_ready = [this] {
    return !slots_.empty() && slots_.front()->is_ready;
  };
  const Deadline deadline = Deadline::in(options_.timeout);
  DDP_EXPECT(is_ready_.wait_until(lock, deadline.at(), front_is_ready), Timeout,
             "loader: rank ", sampler_.options().rank, " waited ",
             deadline.seconds_given(), " s for the batch after sample ",
             state_.position, " of epoch ", state_.epoch,
             "; is the file system hung? Raise LoaderOptions::timeout if it "
             "is merely slow");
  Slot& slot = *slots_.front();
  if (slot.error) std::rethrow_exception(slot.error);
  const bool is_end = slot.samples.empty();
  Batch batch = std::move(slot.batch);
  slots_.pop_front();
  has_room_.notify_one();
  state_ = batch.resume;
  end_is_due_ = !is_end && !options_.endless && state_.position == 0;
  if (is_end) return std::nullopt;
  return batch;
}

void Loader::start_at(const SamplerState& state) {
  const std::lock_guard lock(mutex_);
  sampler_.restore(state);
  state_ = sampler_.state();
  end_is_due_ = false;
  slots_.clear();  // readers of dropped slots hold them until they are done
  has_room_.notify_all();
}

void Loader::set_epoch(std::uint64_t epoch) {
  if (epoch != state_.epoch || end_is_due_) start_at({epoch, 0, state_.seed});
}

void Loader::start_threads() {
  try {
    for (int i = 0; i < options_.threads; ++i)
      threads_.emplace_back([this] { work(); });
  } catch (...) {
    stop_threads();
    throw;
  }
}

void Loader::stop_threads() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  has_room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::work() {
  while (const auto slot = take_ticket()) {
    std::exception_ptr error;
    try {
      read(*slot);
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      slot->error = error;
      slot->is_ready = true;
    }
    is_ready_.notify_one();
  }
}

// Drawing and queueing are one step under the lock: that is what makes the
// order of batches free of the threads' timing.
std::shared_ptr<Loader::Slot> Loader::take_ticket() {
  std::unique_lock lock(mutex_);
  has_room_.wait(lock, [this] {
    return is_stopping_ ||
           slots_.size() < static_cast<std::size_t>(options_.read_ahead);
  });
  if (is_stopping_) return nullptr;
  auto slot = std::make_shared<Slot>();
  slot->samples = draw();
  slot->batch.resume = sampler_.state();
  slots_.push_back(slot);
  return slot;
}

std::vector<Sample> Loader::draw() {
  std::vector<Sample> samples;
  const auto batch = static_cast<std::size_t>(options_.batch);
  while (samples.size() < batch) {
    // A started pass ends only between batches: the state after its last
    // batch already is the next epoch's start.
    if (!options_.endless && !samples.empty() && sampler_.remaining() == 0)
      break;
    const auto sample = sampler_.next();
    if (sample)
      samples.push_back(*sample);
    else if (!options_.endless)
      return {};
  }
  if (samples.size() == batch || options_.keep_partial) return samples;
  sampler_.next();  // the end of this pass, in place of its partial batch
  return {};
}

void Loader::read(Slot& slot) {
  Batch& batch = slot.batch;
  batch.sequences = static_cast<std::int64_t>(slot.samples.size());
  batch.sequence = source_.sequence();
  if (batch.sequences == 0) return;
  batch.x = allocate(batch.tokens());
  batch.y = allocate(batch.tokens());
  std::int64_t row = 0;
  for (const Sample& sample : slot.samples) {
    source_.read(sample.index, batch.x.get() + row, batch.y.get() + row);
    batch.is_duplicate.push_back(sample.is_duplicate);
    row += batch.sequence;
  }
}

std::shared_ptr<std::int32_t[]> Loader::allocate(std::int64_t count) {
  if (!options_.allocator)
    return std::shared_ptr<std::int32_t[]>(new std::int32_t[count]);
  const std::lock_guard lock(allocator_mutex_);
  return options_.allocator(count);
}

}  // namespace ddp
