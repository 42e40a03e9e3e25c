#include "libddp/optim/sharded_optimizer.h"

#include <algorithm>

#include "kernels/elementwise.h"
#include "kernels/update.h"
#include "libddp/device/stream.h"

namespace ddp {
namespace {

DType state_dtype(DType weight) {
  return weight == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

bool is_narrow(DType dtype) {
  return dtype == DType::kBFloat16 || dtype == DType::kFloat16;
}

bool is_sgd(const std::vector<OptimizerConfig>& groups) {
  return std::holds_alternative<Sgd>(groups.front());
}

bool needs_moment1(const std::vector<OptimizerConfig>& groups) {
  return !is_sgd(groups) ||
         std::any_of(groups.begin(), groups.end(), [](const auto& group) {
           return std::get<Sgd>(group).momentum != 0;
         });
}

std::string_view kind_name(const OptimizerConfig& config) {
  constexpr std::string_view kNames[] = {"AdamW", "Adam", "SGD"};
  return kNames[config.index()];
}

AdamStep adam_step(const OptimizerConfig& config, double lr_factor) {
  if (const auto* w = std::get_if<AdamW>(&config))
    return {static_cast<float>(w->lr * lr_factor),
            w->beta1,
            w->beta2,
            w->eps,
            w->weight_decay,
            true};
  const auto& a = std::get<Adam>(config);
  return {static_cast<float>(a.lr * lr_factor),
          a.beta1,
          a.beta2,
          a.eps,
          a.weight_decay,
          false};
}

SgdStep sgd_step(const OptimizerConfig& config, double lr_factor) {
  const auto& s = std::get<Sgd>(config);
  return {static_cast<float>(s.lr * lr_factor), s.momentum, s.dampening,
          s.weight_decay, s.nesterov};
}

char* byte_at(TensorView view, std::int64_t element) {
  return static_cast<char*>(view.data) + element * size_of(view.dtype);
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(const Plan& plan,
                                   std::vector<ArenaMemory> arenas,
                                   std::vector<OptimizerConfig> groups,
                                   std::vector<int> group_of,
                                   const ShardedOptimizerOptions& options)
    : plan_(plan),
      memory_(std::move(arenas)),
      groups_(std::move(groups)),
      group_of_(std::move(group_of)),
      options_(options) {
  for (std::size_t i = 1; i < groups_.size(); ++i)
    DDP_EXPECT(groups_[i].index() == groups_[0].index(), InvalidArgument,
               "parameter group ", i, " is for ", kind_name(groups_[i]),
               " where the default optimizer is ", kind_name(groups_[0]),
               "; use one kind for all groups");
  const int count = static_cast<int>(plan_.arenas().size());
  for (int a = 0; a < count; ++a) build_arena(a);
}

Buffer ShardedOptimizer::zeroed(std::int64_t elements, DType dtype) const {
  Buffer buffer = Buffer::allocate(elements * size_of(dtype), options_.device);
  Stream stream(options_.device);
  zero_bytes(buffer.data(), buffer.bytes(), stream);
  synchronize(stream);
  return buffer;
}

void ShardedOptimizer::build_arena(int a) {
  const ArenaPlan& arena = plan_.arenas()[a];
  ArenaState state;
  if (a > 0)
    state.position =
        states_.back().position + plan_.arenas()[a - 1].layout.size();
  if (arena.trainable) {
    const DType dtype = state_dtype(arena.weight_dtype);
    state.ranges = shard_ranges(arena, options_.rank, options_.sharded);
    const std::int64_t size = state_size(state.ranges);
    if (needs_moment1(groups_)) state.moment1 = zeroed(size, dtype);
    if (!is_sgd(groups_)) state.moment2 = zeroed(size, dtype);
    if (options_.master_weights && is_narrow(arena.weight_dtype))
      state.master = zeroed(size, dtype);
    state.update = make_table(a, state.ranges, state, /*with_state=*/true);
    // Every rank measures its own slices, whoever updates what.
    norms_.push_back(make_table(a, shard_ranges(arena, options_.rank, true),
                                state, /*with_state=*/false));
    norm_parts_ =
        Buffer::allocate(norms_.size() * sizeof(NormPart), options_.device);
  }
  states_.push_back(std::move(state));
}

UpdateTable ShardedOptimizer::make_table(int a,
                                         const std::vector<ShardRange>& ranges,
                                         const ArenaState& state,
                                         bool with_state) const {
  const ArenaPlan& arena = plan_.arenas()[a];
  const auto adopted = [&](int owner) {
    return plan_.parameters()[owner].adopted_weight;
  };
  const PieceRules rules{
      .group = [&](int owner) { return with_state ? group_of_[owner] : 0; },
      .clock =
          [&](int owner) {
            return with_state && has_clock(owner) ? owner : -1;
          },
      .may_merge =
          [&](int owner) {
            return !with_state || options_.sharded || !adopted(owner);
          }};
  const DType dtype = state_dtype(arena.weight_dtype);
  const auto state_at = [&](const Buffer& buffer, std::int64_t offset) {
    return buffer.data() && with_state
               ? buffer.as<char>() + offset * size_of(dtype)
               : nullptr;
  };
  std::vector<UpdateRun> runs;
  for (const ShardPiece& piece : shard_pieces(arena, ranges, rules)) {
    void* weight = byte_at(memory_[a].weights, piece.range.begin);
    if (with_state && !options_.sharded && adopted(piece.parameter))
      weight = static_cast<char*>(adopted(piece.parameter)) +
               piece.key * size_of(arena.weight_dtype);
    UpdateRun run;
    run.weight = PeerList::one(weight);
    run.master = state_at(state.master, piece.state_offset);
    run.moment1 = state_at(state.moment1, piece.state_offset);
    run.moment2 = state_at(state.moment2, piece.state_offset);
    run.gradient =
        PeerList::one(byte_at(memory_[a].gradients, piece.range.begin));
    run.numel = piece.range.size();
    run.position = state.position + piece.range.begin;
    run.key = piece.key;
    run.group = piece.group;
    run.clock = piece.clock;
    runs.push_back(run);
  }
  return UpdateTable(std::move(runs), arena.weight_dtype, arena.gradient_dtype,
                     options_.device);
}

void ShardedOptimizer::load_masters(StreamView stream) {
  std::vector<TensorPair> pairs;
  for (std::size_t a = 0; a < states_.size(); ++a) {
    if (!states_[a].master.data()) continue;
    for (const UpdateRun& run : states_[a].update.runs())
      pairs.push_back(
          {{run.master, run.numel, DType::kFloat32, options_.device},
           {run.weight.data[0], run.numel, plan_.arenas()[a].weight_dtype,
            options_.device}});
  }
  if (!pairs.empty()) cast(pairs, stream);
}

void ShardedOptimizer::norm(NormKind kind, double power, StreamView stream) {
  for (std::size_t i = 0; i < norms_.size(); ++i)
    ddp::norm(norms_[i], kind, power, norm_parts_.as<NormPart>() + i, stream);
}

void ShardedOptimizer::update(const StepControl* control,
                              const ParameterClocks& clocks, double lr_factor,
                              StreamView stream) {
  std::vector<AdamStep> adam_steps;
  std::vector<SgdStep> sgd_steps;
  for (const OptimizerConfig& group : groups_) {
    if (is_sgd(groups_))
      sgd_steps.push_back(sgd_step(group, lr_factor));
    else
      adam_steps.push_back(adam_step(group, lr_factor));
  }
  for (std::size_t a = 0; a < states_.size(); ++a) {
    if (!plan_.arenas()[a].trainable) continue;
    if (is_sgd(groups_))
      sgd(states_[a].update, sgd_steps, control, clocks, stream);
    else
      adam(states_[a].update, adam_steps, control, clocks, stream);
  }
}

void ShardedOptimizer::add_arena(ArenaMemory memory) {
  memory_.push_back(memory);
  build_arena(static_cast<int>(memory_.size()) - 1);
}

double ShardedOptimizer::lr(std::size_t group) const {
  return std::visit([](const auto& config) -> double { return config.lr; },
                    groups_.at(group));
}

int ShardedOptimizer::owner_at(std::int64_t position) const {
  for (std::size_t a = 0; a < states_.size(); ++a) {
    const ArenaPlan& arena = plan_.arenas()[a];
    const std::int64_t element = position - states_[a].position;
    if (element < 0 || element >= arena.layout.size()) continue;
    for (std::size_t i = 0; i < arena.parameters.size(); ++i) {
      const ElementRange range = arena.layout.parameter(static_cast<int>(i));
      if (element >= range.begin && element < range.end)
        return arena.parameters[i];
    }
  }
  return -1;
}

TensorView ShardedOptimizer::masters(int a) const {
  const Buffer& master = states_.at(a).master;
  if (!master.data()) return {};
  return master.view(0, state_size(states_[a].ranges), DType::kFloat32);
}

bool ShardedOptimizer::has_clock(int owner) const {
  return options_.own_clocks ||
         plan_.weights_within(plan_.placement(owner).arena).first >= 0;
}

std::size_t ShardedOptimizer::state_bytes() const {
  std::size_t bytes = 0;
  for (const ArenaState& state : states_)
    bytes +=
        state.master.bytes() + state.moment1.bytes() + state.moment2.bytes();
  return bytes;
}

}  // namespace ddp
