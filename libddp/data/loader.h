/// \file
/// Loader: batches read ahead by threads, in the sampler's order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "libddp/base/deadline.h"
#include "libddp/data/sampler.h"
#include "libddp/data/token_dataset.h"

namespace ddp {

/// Memory of `count` tokens that frees itself, for example pinned.
using TokenAllocator =
    std::function<std::shared_ptr<std::int32_t[]>(std::int64_t count)>;

struct LoaderOptions {
  /// Sequences of a batch on this rank.
  std::int64_t batch = 8;
  /// Reading threads. One keeps up with local text; slow file systems want
  /// more.
  int threads = 2;
  /// Batches that are read or being read before they are asked for. More
  /// rides out longer stalls and takes more memory.
  int read_ahead = 4;
  /// true: passes follow each other without end and every batch is full.
  /// false: next() returns nothing once after each pass.
  bool endless = false;
  /// Of a pass that does not divide by `batch`: keep the smaller last batch.
  bool keep_partial = true;
  /// Bounds each wait in next(); a hung file system then is an error.
  Milliseconds timeout = std::chrono::minutes(5);
  /// Called by the reading threads, one call at a time. Empty: plain memory.
  TokenAllocator allocator = {};
};

struct Batch {
  std::int64_t sequences = 0;
  std::int64_t sequence = 0;  ///< tokens of each
  /// [sequences, sequence], row-major; y[i] follows x[i] in the text.
  std::shared_ptr<std::int32_t[]> x;
  std::shared_ptr<std::int32_t[]> y;
  /// A flag for each sequence: padding, to be left out of averages.
  std::vector<bool> is_duplicate;
  /// Save this once the batch is used: resuming there yields the next one.
  SamplerState resume;

  std::int64_t tokens() const noexcept { return sequences * sequence; }
};

/// Reads ahead with threads of its own. What next() yields depends on the
/// sampler alone, never on the threads. The members are for one thread; the
/// destructor stops reading and returns once the reads in flight have ended.
class Loader {
 public:
  /// `source` must outlive the loader. Throws InvalidArgument if the options
  /// are out of range, the sampler is of another size, or `endless` is asked
  /// for where ranks get unequally many samples or none.
  Loader(const SequenceSource& source, const DistributedSampler& sampler,
         LoaderOptions options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  /// The next batch, or nothing at the end of a pass. Rethrows what reading
  /// that batch threw, now and on every further call until start_at(). Throws
  /// Timeout.
  std::optional<Batch> next();

  /// Where the next batch starts; drops nothing.
  SamplerState state() const noexcept { return state_; }
  /// Drops what was read ahead and goes on at `state`.
  void start_at(const SamplerState& state);
  /// As DistributedSampler::set_epoch(): begins `epoch`, unless it is the one
  /// that the next batch belongs to.
  void set_epoch(std::uint64_t epoch);

 private:
  struct Slot {
    std::vector<Sample> samples;  // empty: the end of a pass
    Batch batch;
    std::exception_ptr error;
    bool is_ready = false;
  };

  void start_threads();
  void stop_threads() noexcept;
  void work();
  std::shared_ptr<Slot> take_ticket();
  std::vector<Sample> draw();
  void read(Slot& slot);
  std::shared_ptr<std::int32_t[]> allocate(std::int64_t count);

  const SequenceSource& source_;
  const LoaderOptions options_;
  // Of the caller's thread: where the next batch starts, and whether the end
  // of a pass, whose last batch is out, still has to be told.
  SamplerState state_;
  bool end_is_due_ = false;

  std::mutex mutex_;
  std::condition_variable has_room_;
  std::condition_variable is_ready_;
  DistributedSampler sampler_;               // guarded by mutex_
  std::deque<std::shared_ptr<Slot>> slots_;  // in order; guarded by mutex_
  bool is_stopping_ = false;                 // guarded by mutex_
  std::mutex allocator_mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace ddp
