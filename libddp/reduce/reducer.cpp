#include "libddp/reduce/reducer.h"

#include <algorithm>

#include "kernels/core/error.h"
#include "kernels/elementwise.h"

namespace ddp {

Reducer::Reducer(const Plan& plan, std::vector<TensorView> gradients,
                 Communicator& communicator, const Options& options)
    : plan_(plan),
      communicator_(communicator),
      options_(options),
      gradients_(std::move(gradients)),
      parameters_(plan.parameters().size()),
      read_(communicator.device()) {
  for (const ArenaPlan& arena : plan_.arenas())
    buckets_.emplace_back(arena.trainable ? arena.layout.buckets().size() : 0);
}

void Reducer::add_arena(TensorView gradients) {
  gradients_.push_back(gradients);
  buckets_.emplace_back(plan_.arenas().back().layout.buckets().size());
}

void Reducer::order_changed() {
  DDP_EXPECT(!in_pass_, InvalidArgument,
             "the launch order was changed inside a backward");
}

TensorView Reducer::slot(int owner) const {
  const Placement& at = plan_.placement(owner);
  return gradients_[at.arena].slice(at.range.begin, at.range.size());
}

void Reducer::expect_trainable(int parameter) const {
  DDP_EXPECT(parameter >= 0 && parameter < static_cast<int>(parameters_.size()),
             InvalidArgument, "parameter ", parameter, " of ",
             parameters_.size(), " does not exist");
  DDP_EXPECT(plan_.arenas()[plan_.placement(parameter).arena].trainable,
             InvalidArgument, "a gradient was produced for ",
             to_text(spec(parameter)),
             ", which was frozen when DataParallel was built; call "
             "unfreeze() on all ranks first");
}

GradientTarget Reducer::target(int parameter, StreamView stream) {
  expect_trainable(parameter);
  const int owner = plan_.owner(parameter);
  const Placement& at = plan_.placement(owner);
  const BucketRef ref{at.arena, at.bucket};
  follow_reader(stream);
  if (state(ref).launched) reopen(ref, stream);
  ParameterState& p = parameters_[owner];
  const bool accumulate = p.written;
  p.written = true;
  return {slot(owner), accumulate};
}

void Reducer::follow_reader(StreamView stream) {
  if (std::find(after_read_.begin(), after_read_.end(), stream) !=
      after_read_.end())
    return;
  read_.block(stream);
  after_read_.push_back(stream);
}

void Reducer::reopen(BucketRef ref, StreamView stream) {
  // The bucket holds the sum over ranks. It must enter the next sum once, not
  // W times: one rank keeps it (with slices, each keeps its own), and the
  // others start from nothing. That is exact where dividing by W is not.
  BucketState& bucket = state(ref);
  bucket.work.block(stream);
  bucket.launched = false;
  if (options_.scatter) {
    const ElementRange all = layout(ref).range;
    const ElementRange own = plan_.arenas()[ref.arena].layout.slice(
        ref.bucket, communicator_.rank());
    const TensorView& arena = gradients_[ref.arena];
    const TensorView rest[] = {arena.slice(all.begin, own.begin - all.begin),
                               arena.slice(own.end, all.end - own.end)};
    fill_zero(rest, stream);
  } else if (communicator_.rank() != 0) {
    for (const int index : layout(ref).parameters)
      parameters_[plan_.arenas()[ref.arena].parameters[index]].written = false;
  }
}

void Reducer::begin_pass() {
  in_pass_ = true;
  pass_complete_ = false;
  cursor_ = 0;
  ready_order_.clear();
  times_.clear();
  pass_begin_ = std::chrono::steady_clock::now();
  for (ParameterState& p : parameters_) p.reports = 0;
  for (const BucketRef ref : plan_.launch_order()) {
    state(ref).pending = static_cast<int>(layout(ref).parameters.size());
    state(ref).streams.clear();
  }
}

bool Reducer::mark_ready(int parameter, StreamView stream, bool sync) {
  expect_trainable(parameter);
  const int owner = plan_.owner(parameter);
  ParameterState& p = parameters_[owner];
  DDP_EXPECT(p.written, InvalidArgument, "the gradient of ",
             to_text(spec(parameter)),
             " was reported ready but never written: call grad() for the "
             "place to write it to, in every backward");
  p.used = true;
  ++p.unreduced;
  ++unreduced_;
  if (!sync) return false;
  if (!in_pass_) begin_pass();
  ++p.reports;
  DDP_EXPECT(p.reports <= plan_.sharers(owner), InvalidArgument,
             "the gradient of ", to_text(spec(parameter)),
             " was reported ready twice in one backward; call "
             "finish_backward() between two backwards that do not reach all "
             "parameters");
  const Placement& at = plan_.placement(owner);
  BucketState& bucket = state({at.arena, at.bucket});
  if (std::find(bucket.streams.begin(), bucket.streams.end(), stream) ==
      bucket.streams.end())
    bucket.streams.push_back(stream);
  if (p.reports < plan_.sharers(owner)) return false;
  if (--bucket.pending > 0) return false;
  ready_order_.push_back({at.arena, at.bucket});
  launch_ready(stream);
  return pass_complete_;
}

void Reducer::launch_ready(StreamView stream) {
  const auto& order = plan_.launch_order();
  while (cursor_ < order.size() && state(order[cursor_]).pending == 0)
    launch(order[cursor_++], stream);
  if (cursor_ == order.size()) {
    in_pass_ = false;
    pass_complete_ = true;
  }
}

void Reducer::fill_absent(BucketRef ref, StreamView stream) {
  std::vector<TensorView> absent;
  for (const int index : layout(ref).parameters) {
    const int owner = plan_.arenas()[ref.arena].parameters[index];
    if (!parameters_[owner].written) absent.push_back(slot(owner));
    parameters_[owner].written = true;
  }
  if (!absent.empty()) fill_zero(absent, stream);
}

void Reducer::join_producers(BucketRef ref, StreamView stream) {
  for (const StreamView producer : state(ref).streams) {
    if (producer == stream) continue;
    Event event(producer.device);
    event.record(producer);
    event.block(stream);
  }
}

template <typename Act>
void Reducer::naming_bucket(BucketRef ref, Act act) const {
  try {
    act();
  } catch (const Error& error) {
    raise(error.kind(), concat(error.what(), " (", bucket_text(ref), ")"));
  }
}

void Reducer::launch(BucketRef ref, StreamView stream) {
  BucketState& bucket = state(ref);
  if (bucket.launched) reopen(ref, stream);
  join_producers(ref, stream);
  fill_absent(ref, stream);
  const ElementRange range = layout(ref).range;
  const TensorView view =
      gradients_[ref.arena].slice(range.begin, range.size());
  naming_bucket(ref, [&] { bucket.work = reduce(ref, view, stream); });
  bucket.launched = true;
  has_reduced_ = true;
  count_reduced(ref);
  const std::chrono::duration<double, std::milli> since =
      std::chrono::steady_clock::now() - pass_begin_;
  times_.push_back({ref, static_cast<std::int64_t>(view.bytes()), since.count(),
                    !finishing_});
}

Work Reducer::reduce(BucketRef ref, TensorView view, StreamView stream) {
  if (!options_.scatter)
    return communicator_.all_reduce(view, ReduceOp::kSum, stream);
  const ElementRange own =
      plan_.arenas()[ref.arena].layout.slice(ref.bucket, communicator_.rank());
  return communicator_.reduce_scatter(
      view, gradients_[ref.arena].slice(own.begin, own.size()), ReduceOp::kSum,
      stream);
}

void Reducer::count_reduced(BucketRef ref) {
  for (const int index : layout(ref).parameters) {
    ParameterState& p =
        parameters_[plan_.arenas()[ref.arena].parameters[index]];
    unreduced_ -= p.unreduced;
    p.unreduced = 0;
  }
}

void Reducer::finish(StreamView stream) {
  if (pass_complete_) {
    pass_complete_ = false;
    return;
  }
  const std::vector<int> missing = launch_rest(stream);
  DDP_EXPECT(options_.allow_unused || missing.empty(), InvalidArgument,
             missing_text(missing));
}

void Reducer::finish_absent(StreamView stream) {
  if (!pass_complete_) launch_rest(stream);
  pass_complete_ = false;
}

std::vector<int> Reducer::launch_rest(StreamView stream) {
  if (!in_pass_) begin_pass();
  finishing_ = true;
  std::vector<int> missing;
  for (const BucketRef ref : plan_.launch_order()) {
    for (const int index : layout(ref).parameters) {
      const int owner = plan_.arenas()[ref.arena].parameters[index];
      if (parameters_[owner].reports < plan_.sharers(owner))
        missing.push_back(owner);
    }
    if (state(ref).pending > 0) ready_order_.push_back(ref);
    state(ref).pending = 0;
  }
  launch_ready(stream);
  finishing_ = false;
  pass_complete_ = false;
  return missing;
}

std::string Reducer::missing_text(const std::vector<int>& missing) const {
  constexpr std::size_t kShown = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(missing.size(), kShown); ++i)
    names += (i ? ", " : "") + to_text(spec(missing[i]));
  if (missing.size() > kShown)
    names += concat(" and ", missing.size() - kShown, " more");
  return concat("rank ", communicator_.rank(),
                ": backward ended without a "
                "gradient for ",
                missing.size(), " of ", plan_.parameters().size(),
                " parameters: ", names,
                "; use them in the loss, freeze them, or set "
                "find_unused_parameters");
}

void Reducer::sync(StreamView stream) {
  DDP_EXPECT(!in_pass_, InvalidArgument,
             "gradients were synchronised inside a backward; call "
             "finish_backward() first");
  times_.clear();
  pass_begin_ = std::chrono::steady_clock::now();
  finishing_ = true;
  for (const BucketRef ref : plan_.launch_order()) {
    const auto& members = layout(ref).parameters;
    const bool holds_new =
        !state(ref).launched ||
        std::any_of(members.begin(), members.end(), [&](int index) {
          return parameters_[plan_.arenas()[ref.arena].parameters[index]]
                     .unreduced > 0;
        });
    if (holds_new) launch(ref, stream);
  }
  finishing_ = false;
  pass_complete_ = false;
}

void Reducer::block(StreamView stream) const {
  for (const BucketRef ref : plan_.launch_order()) {
    const BucketState& bucket = buckets_[ref.arena][ref.bucket];
    if (!bucket.launched) continue;
    naming_bucket(ref, [&] { bucket.work.block(stream); });
  }
}

std::string Reducer::bucket_text(BucketRef ref) const {
  const ArenaPlan& arena = plan_.arenas()[ref.arena];
  const auto& members = layout(ref).parameters;
  const auto& first = spec(arena.parameters[members.front()]);
  const auto& last = spec(arena.parameters[members.back()]);
  const std::int64_t bytes =
      layout(ref).range.size() * size_of(arena.gradient_dtype);
  return concat(options_.scatter ? "reduce_scatter" : "all_reduce",
                " of bucket ", ref.bucket, " of arena ", ref.arena, ", ", bytes,
                " bytes, gradients of '", last.name, "' to '", first.name, "'");
}

void Reducer::reset(StreamView reader) {
  read_.record(reader);
  after_read_ = {reader};
  for (ParameterState& p : parameters_) p = {};
  for (auto& arena : buckets_)
    for (BucketState& bucket : arena) {
      bucket.launched = false;
      bucket.work = {};
    }
  in_pass_ = pass_complete_ = has_reduced_ = false;
  unreduced_ = 0;
}

}  // namespace ddp
