// One optimizer step: gradients in, votes out, weights updated.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/elementwise.h"
#include "libddp/device/stream.h"
#include "libddp/engine/impl.h"

namespace ddp {

GradientTarget DataParallel::Impl::grad(int parameter, StreamView stream) {
  return reducer->target(parameter, stream);
}

void DataParallel::Impl::grad_ready(int parameter, StreamView stream) {
  if (void* adopted =
          plan.parameters()[plan.owner(parameter)].adopted_gradient) {
    // The caller accumulates there, so the slot is overwritten each time.
    const TensorView slot = reducer->target(parameter, stream).tensor;
    const TensorPair pair[] = {
        {slot, {adopted, slot.numel, slot.dtype, slot.device}}};
    cast(pair, stream);
  }
  if (reducer->mark_ready(parameter, stream, sync_enabled))
    close_window(stream);
}

void DataParallel::Impl::finish_backward(StreamView stream) {
  if (!sync_enabled) return;
  reducer->finish(stream);
  close_window(stream);
}

void DataParallel::Impl::sync_gradients(StreamView stream) {
  reducer->sync(stream);
  close_window(stream);
}

/// Backward is over: what must happen once, whether the last gradient, the
/// user or step() noticed it.
void DataParallel::Impl::close_window(StreamView stream) {
  mailbox.mark_backward_end(stream);
  return_adopted_gradients(stream);
}

void DataParallel::Impl::return_adopted_gradients(StreamView stream) {
  std::vector<TensorPair> pairs;
  std::vector<TensorView> adopted;
  for (int p = 0; p < static_cast<int>(plan.parameters().size()); ++p) {
    const ParameterSpec& spec = plan.parameters()[p];
    if (plan.owner(p) != p || !spec.adopted_gradient || !spec.requires_grad)
      continue;
    const TensorView slot = gradient(p);
    adopted.push_back(
        {spec.adopted_gradient, slot.numel, slot.dtype, slot.device});
    pairs.push_back({adopted.back(), slot});
  }
  if (pairs.empty()) return;
  reducer->block(stream);
  cast(pairs, stream);
  scale(adopted, 1.0 / world.size(), stream);
}

void DataParallel::Impl::zero_grad(StreamView stream) {
  reducer->reset(stream);
}

VoteRules DataParallel::Impl::rules(const StepInput& input) const {
  VoteRules rules;
  rules.world = world.size();
  rules.kind = options.clip_kind;
  rules.power = options.clip_power;
  rules.clip_norm = options.clip_norm;
  rules.scale_by_items = input.num_items.has_value();
  rules.gradient_scale = rules.scale_by_items ? 1.0 : 1.0 / world.size();
  return rules;
}

void DataParallel::Impl::step(const StepInput& input, StreamView stream) {
  reducer->follow_reader(stream);  // steps may be on one stream, then another
  if (reducer->is_in_pass()) {
    reducer->finish(stream);
    close_window(stream);
  } else if (reducer->unreduced() > 0) {
    throw InvalidArgument(
        concat("rank ", world.rank(), ": step ", steps, " would lose ",
               reducer->unreduced(),
               " gradients that were accumulated but never "
               "reduced; let the last backward of a step synchronise, or call "
               "sync_gradients()"));
  } else if (!reducer->has_reduced()) {
    DDP_EXPECT(options.find_unused_parameters, InvalidArgument, "rank ",
               world.rank(), ": step ", steps,
               " has no gradients: run a backward that calls grad_ready()");
    reducer->finish(stream);
    close_window(stream);
  }
  if (options.find_unused_parameters)
    usage->exchange([&](int p) { return reducer->was_used(plan.owner(p)); },
                    stream);
  reducer->block(stream);
  mailbox.mark_backward_end(stream);
  mailbox.mark_reduced(stream);
  weighs_by_items = input.num_items.has_value();
  vote(input, input.request_stop ? kVoteStop : 0u, stream);
  post(input, stream);
}

void DataParallel::Impl::vote(const StepInput& input, std::uint32_t flags,
                              StreamView stream) {
  const VoteRules rule = rules(input);
  optimizer->norm(rule.kind, rule.power, stream);
  const bool check = options.drift_check_interval > 0 &&
                     (steps + 1) % options.drift_check_interval == 0;
  if (check) {  // one arena a time, in turn
    const std::size_t turn = (steps + 1) / options.drift_check_interval;
    checksum(memory[turn % memory.size()].weights, turn,
             replica.as<std::uint64_t>(), stream);
  }
  Vote mine;
  mine.num_items = input.num_items.value_or(0);
  mine.loss = input.loss.value_or(0);
  mine.flags = flags | (input.loss ? kVoteHasLoss : 0u);
  mine.step = steps;
  mine.operations = communicator->hash();
  Vote* own = votes.as<Vote>() + world.rank();
  cast_vote(mine, optimizer->norm_parts(), optimizer->norm_part_count(),
            rule.kind, input.device_loss,
            check ? replica.as<std::uint64_t>() : nullptr, own, stream);
  communicator
      ->all_gather({own, sizeof(Vote), DType::kUInt8, world.device()},
                   votes.view(0, world.size() * sizeof(Vote), DType::kUInt8),
                   stream)
      .block(stream);
  decide(votes.as<Vote>(), rule, control.as<StepControl>(), stream);
  const ParameterClocks clocks = usage->clocks();
  advance_clocks(control.as<StepControl>(), clocks, stream);
  optimizer->update(control.as<StepControl>(), clocks, input.lr_factor, stream);
}

void DataParallel::Impl::post(const StepInput& input, StreamView stream) {
  if (options.zero_stage > 0) {
    for (int a = 0; a < static_cast<int>(plan.arenas().size()); ++a) {
      const ArenaPlan& arena = plan.arenas()[a];
      if (!arena.trainable) continue;
      for (int b = 0; b < static_cast<int>(arena.layout.buckets().size());
           ++b) {
        const ElementRange range = arena.layout.buckets()[b].range;
        const ElementRange own = arena.layout.slice(b, world.rank());
        communicator
            ->all_gather(memory[a].weights.slice(own.begin, own.size()),
                         memory[a].weights.slice(range.begin, range.size()),
                         stream)
            .block(stream);
      }
    }
    move_adopted_weights(/*into_arena=*/false, stream);
  }
  mailbox.post(control.as<StepControl>(), optimizer->lr(0) * input.lr_factor,
               steps, stream);
  ++steps;
  reorder();
  reducer->reset(stream);
  collect(/*wait=*/false);
  judge(/*all=*/false);
}

/// Others are still in their steps while this rank has no data: it issues the
/// same collectives with zeros, until a vote says that all have joined.
void DataParallel::Impl::join(StreamView stream) {
  for (bool all_joined = false; !all_joined;) {
    if (reducer->is_in_pass() || !reducer->has_reduced() ||
        reducer->unreduced() > 0)
      reducer->finish_absent(stream);
    close_window(stream);
    if (options.find_unused_parameters)
      usage->exchange([&](int p) { return reducer->was_used(plan.owner(p)); },
                      stream);
    reducer->block(stream);
    mailbox.mark_reduced(stream);
    const StepInput nothing{.num_items = weighs_by_items ? std::optional(0.0)
                                                         : std::nullopt};
    vote(nothing, kVoteJoined, stream);
    post(nothing, stream);
    collect(/*wait=*/true);
    all_joined = last_all_joined;
  }
}

/// Buckets leave in the order in which backward completes them, once that has
/// been seen: ranks tell each other theirs after the first steps, and all
/// adopt the order of mean position, so that no rank's bucket waits long.
void DataParallel::Impl::reorder() {
  if (!options.reorder_buckets || world.size() == 1) return;
  if (steps != 2 && steps != 20) return;
  const auto& order = plan.launch_order();
  std::vector<int> position(order.size(), 0);
  const auto& seen = reducer->ready_order();
  for (std::size_t at = 0; at < seen.size(); ++at) {
    const auto found = std::find(order.begin(), order.end(), seen[at]);
    if (found != order.end()) position[found - order.begin()] = at;
  }
  const auto all = world.control().exchange(
      "libddp/ready-order", nlohmann::json(position).dump(),
      Deadline::in(world.collective_timeout()));
  std::vector<long> total(order.size(), 0);
  for (const std::string& text : all) {
    const auto theirs = nlohmann::json::parse(text);
    for (std::size_t i = 0; i < total.size(); ++i)
      total[i] += theirs.at(i).get<long>();
  }
  std::vector<std::size_t> index(order.size());
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = i;
  std::stable_sort(index.begin(), index.end(),
                   [&](auto a, auto b) { return total[a] < total[b]; });
  std::vector<BucketRef> proposed;
  for (const std::size_t i : index) proposed.push_back(order[i]);
  plan.set_launch_order(std::move(proposed));
  reducer->order_changed();
}

}  // namespace ddp
