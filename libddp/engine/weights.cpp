// How weights get in and out: initial values, broadcast, reading.
#include "kernels/elementwise.h"
#include "libddp/device/stream.h"
#include "libddp/engine/impl.h"

namespace ddp {

void DataParallel::Impl::initialize(
    const std::function<void(int, std::span<float>)>& fill, int root) {
  DDP_EXPECT(root >= 0 && root < world.size(), InvalidArgument, "root is rank ",
             root, " of ", world.size());
  Stream stream(world.device());
  for (int a = 0; a < static_cast<int>(plan.arenas().size()); ++a) {
    if (plan.weights_within(a).first >= 0) continue;
    const auto& buckets = plan.arenas()[a].layout.buckets();
    for (int b = 0; b < static_cast<int>(buckets.size()); ++b)
      initialize_bucket(fill, root, a, b, stream);
  }
  move_adopted_weights(/*into_arena=*/false, stream);
  synchronize(stream);
}

void DataParallel::Impl::initialize_bucket(
    const std::function<void(int, std::span<float>)>& fill, int root,
    int arena_index, int bucket_index, StreamView stream) {
  const ArenaPlan& arena = plan.arenas()[arena_index];
  const auto& bucket = arena.layout.buckets()[bucket_index];
  const std::int64_t begin = bucket.range.begin;
  std::vector<float> values(bucket.range.size(), 0.0f);
  if (world.rank() == root)
    for (const int index : bucket.parameters) {
      const ElementRange at = arena.layout.parameter(index);
      fill(arena.parameters[index], {values.data() + (at.begin - begin),
                                     static_cast<std::size_t>(at.size())});
    }
  Buffer staged =
      Buffer::allocate(values.size() * sizeof(float), world.device());
  const TensorView all =
      staged.view(0, static_cast<std::int64_t>(values.size()), DType::kFloat32);
  copy_bytes(staged.data(), values.data(), staged.bytes(), stream);
  communicator->broadcast(all, root, stream).block(stream);
  const TensorPair to_weights[] = {
      {memory[arena_index].weights.slice(begin, bucket.range.size()), all}};
  cast(to_weights, stream);
  const TensorView masters = optimizer->masters(arena_index);
  if (masters.data)
    for (const ShardRange& shard : optimizer->ranges(arena_index))
      if (shard.bucket == bucket_index) {
        const TensorPair to_master[] = {
            {masters.slice(shard.state_offset, shard.range.size()),
             all.slice(shard.range.begin - begin, shard.range.size())}};
        cast(to_master, stream);
      }
  synchronize(stream);  // `values` and `staged` end here
}

void DataParallel::Impl::move_adopted_weights(bool into_arena,
                                              StreamView stream) {
  std::vector<TensorPair> pairs;
  for (int p = 0; p < static_cast<int>(plan.parameters().size()); ++p) {
    if (plan.owner(p) != p || !plan.parameters()[p].adopted_weight) continue;
    if (into_arena)
      pairs.push_back({arena_weight(p), weight(p)});
    else
      pairs.push_back({weight(p), arena_weight(p)});
  }
  if (!pairs.empty()) cast(pairs, stream);
}

void DataParallel::Impl::broadcast_weights(int root) {
  DDP_EXPECT(root >= 0 && root < world.size(), InvalidArgument, "root is rank ",
             root, " of ", world.size());
  Stream stream(world.device());
  move_adopted_weights(/*into_arena=*/true, stream);
  for (int a = 0; a < static_cast<int>(plan.arenas().size()); ++a)
    if (plan.weights_within(a).first < 0)
      communicator->broadcast(memory[a].weights, root, stream).block(stream);
  move_adopted_weights(/*into_arena=*/false, stream);
  optimizer->load_masters(stream);
  synchronize(stream);
}

std::vector<float> DataParallel::Impl::to_host(TensorView tensor,
                                               StreamView stream) const {
  std::vector<float> values(tensor.numel);
  Buffer floats =
      Buffer::allocate(values.size() * sizeof(float), world.device());
  const TensorPair pair[] = {
      {floats.view(0, tensor.numel, DType::kFloat32), tensor}};
  cast(pair, stream);
  copy_bytes(values.data(), floats.data(), floats.bytes(), stream);
  synchronize(stream);
  return values;
}

std::vector<float> DataParallel::Impl::read_weight(int parameter) {
  const TensorView whole = weight(parameter);
  const int owner = plan.owner(parameter);
  const Placement& at = plan.placement(owner);
  const TensorView masters = optimizer->masters(at.arena);
  Stream stream(world.device());
  if (!masters.data) return to_host(whole, stream);
  // Each rank contributes the elements it holds masters of.
  Buffer gathered =
      Buffer::allocate(whole.numel * sizeof(float), world.device());
  const TensorView all = gathered.view(0, whole.numel, DType::kFloat32);
  zero_bytes(gathered.data(), gathered.bytes(), stream);
  for (const ShardRange& shard : optimizer->ranges(at.arena)) {
    const ElementRange part = intersect(shard.range, at.range);
    if (part.size() <= 0) continue;
    const TensorPair pair[] = {
        {all.slice(part.begin - at.range.begin, part.size()),
         masters.slice(shard.state_offset + part.begin - shard.range.begin,
                       part.size())}};
    cast(pair, stream);
  }
  if (options.zero_stage > 0)
    communicator->all_reduce(all, ReduceOp::kSum, stream).block(stream);
  return to_host(all, stream);
}

std::vector<float> DataParallel::Impl::read_gradient(int parameter) {
  const int owner = plan.owner(parameter);
  const Placement& at = plan.placement(owner);
  DDP_EXPECT(plan.arenas()[at.arena].trainable, InvalidArgument, "parameter ",
             to_text(plan.parameters()[owner]),
             " is frozen and has no gradient");
  DDP_EXPECT(reducer->has_reduced() && !reducer->is_in_pass() &&
                 reducer->unreduced() == 0,
             InvalidArgument,
             "gradients are not reduced now: read them "
             "between finish_backward() and step(), and call "
             "sync_gradients() after backwards without synchronisation");
  Stream stream(world.device());
  reducer->block(stream);
  const TensorView slot = gradient(owner);
  Buffer mean = Buffer::allocate(slot.numel * sizeof(float), world.device());
  const TensorView all = mean.view(0, slot.numel, DType::kFloat32);
  zero_bytes(mean.data(), mean.bytes(), stream);
  const ArenaPlan& arena = plan.arenas()[at.arena];
  const ElementRange own = options.zero_stage > 0
                               ? arena.layout.slice(at.bucket, world.rank())
                               : at.range;
  const ElementRange part = intersect(own, at.range);
  if (part.size() > 0) {
    const TensorPair pair[] = {
        {all.slice(part.begin - at.range.begin, part.size()),
         slot.slice(part.begin - at.range.begin, part.size())}};
    cast(pair, stream);
  }
  if (options.zero_stage > 0)
    communicator->all_reduce(all, ReduceOp::kSum, stream).block(stream);
  const TensorView scaled[] = {all};
  scale(scaled, 1.0 / world.size(), stream);
  return to_host(all, stream);
}

}  // namespace ddp
