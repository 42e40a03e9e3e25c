#include "libddp/engine/impl.h"

#include <algorithm>

#include "libddp/backends/backend.h"
#include "libddp/base/log.h"
#include "libddp/base/nearest.h"
#include "libddp/comm/checked_communicator.h"
#include "libddp/comm/observed_communicator.h"
#include "libddp/device/stream.h"

namespace ddp {
namespace {

void expect_valid(const DataParallelOptions& options) {
  DDP_EXPECT(options.zero_stage >= 0 && options.zero_stage <= 1,
             InvalidArgument, "zero_stage is ", options.zero_stage,
             "; this build knows 0 (replicas) and 1 (sharded optimizer)");
  DDP_EXPECT(options.clip_norm >= 0, InvalidArgument, "clip_norm is ",
             options.clip_norm, "; give a positive norm, or 0 for none");
  DDP_EXPECT(options.clip_kind != NormKind::kPower || options.clip_power > 0,
             InvalidArgument, "clip_power is ", options.clip_power,
             "; the p of a p-norm is positive");
  DDP_EXPECT(options.bucket_bytes > 0, InvalidArgument,
             "bucket_bytes is 0; give the bytes of gradient in a bucket");
  DDP_EXPECT(options.max_steps_in_flight >= 1, InvalidArgument,
             "max_steps_in_flight is ", options.max_steps_in_flight,
             "; at least 1 step is in flight");
}

Buffer zeroed(std::size_t bytes, Device device) {
  Buffer buffer = Buffer::allocate(bytes, device);
  Stream stream(device);
  zero_bytes(buffer.data(), bytes, stream);
  synchronize(stream);
  return buffer;
}

}  // namespace

Plan DataParallel::Impl::make_plan(const World& world,
                                   std::vector<ParameterSpec> parameters,
                                   const DataParallelOptions& options) {
  expect_valid(options);
  std::vector<DType> gradients;
  for (const ParameterSpec& p : parameters)
    gradients.push_back(gradient_dtype(options.precision, p.dtype));
  return Plan(std::move(parameters), gradients,
              {.world = world.size(), .bucket_bytes = options.bucket_bytes});
}

DataParallel::Impl::Impl(const World& world_in,
                         std::vector<ParameterSpec> parameters,
                         DataParallelOptions options_in)
    : world(world_in),
      options(std::move(options_in)),
      plan(make_plan(world, std::move(parameters), options)),
      mailbox(world.device(), options.max_steps_in_flight) {
  expect_equal_plans(plan, world.control(), world.rank(),
                     Deadline::in(world.collective_timeout()));
  auto opened = make_communicator(world, options.backend);
  if (options.decorate) opened = options.decorate(std::move(opened));
  if (options.checked)
    opened = std::make_unique<CheckedCommunicator>(std::move(opened), world);
  if (options.observer)
    opened = std::make_unique<ObservedCommunicator>(std::move(opened),
                                                    options.observer);
  communicator = std::make_unique<RecordedCommunicator>(std::move(opened));
  for (int a = 0; a < static_cast<int>(plan.arenas().size()); ++a)
    memory.push_back(allocate_arena(a));
  std::vector<TensorView> gradients;
  for (const ArenaMemory& arena : memory) gradients.push_back(arena.gradients);
  reducer = std::make_unique<Reducer>(
      plan, gradients, *communicator,
      Reducer::Options{.scatter = options.zero_stage > 0,
                       .allow_unused = options.find_unused_parameters});
  optimizer = std::make_unique<ShardedOptimizer>(
      plan, memory, group_configs(), group_indices(),
      ShardedOptimizerOptions{
          .rank = world.rank(),
          .sharded = options.zero_stage > 0,
          .master_weights = options.precision.master_weights,
          .own_clocks = options.find_unused_parameters,
          .device = world.device()});
  usage = std::make_unique<UsageVote>(
      static_cast<int>(plan.parameters().size()), *communicator,
      options.max_steps_in_flight + 1);
  votes = zeroed(world.size() * sizeof(Vote), world.device());
  replica = zeroed(sizeof(std::uint64_t), world.device());
  control = Buffer::allocate(sizeof(StepControl), world.device());
  Stream stream(world.device());
  const StepControl initial;
  copy_bytes(control.data(), &initial, sizeof initial, stream);
  move_adopted_weights(/*into_arena=*/true, stream);
  synchronize(stream);
  if (world.rank() == 0) log(LogLevel::kInfo, describe());
}

ArenaMemory DataParallel::Impl::allocate_arena(int a) {
  const ArenaPlan& arena = plan.arenas()[a];
  const std::int64_t size = arena.layout.size();
  const auto make = [&](DType dtype, bool registered) {
    const std::size_t bytes = size * size_of(dtype);
    buffers.push_back(registered ? communicator->allocate(bytes)
                                 : Buffer::allocate(bytes, world.device()));
    Stream stream(world.device());
    zero_bytes(buffers.back().data(), bytes, stream);
    synchronize(stream);
    return buffers.back().view(0, size, dtype);
  };
  ArenaMemory result;
  const auto [within, offset] = plan.weights_within(a);
  result.weights = within < 0 ? make(arena.weight_dtype, /*registered=*/true)
                              : memory[within].weights.slice(offset, size);
  if (arena.trainable)
    result.gradients = make(arena.gradient_dtype, /*registered=*/false);
  return result;
}

std::vector<OptimizerConfig> DataParallel::Impl::group_configs() const {
  std::vector<OptimizerConfig> configs{options.optimizer};
  for (const ParameterGroup& group : options.groups)
    configs.push_back(group.optimizer);
  return configs;
}

std::vector<int> DataParallel::Impl::group_indices() const {
  std::vector<int> result(plan.parameters().size(), 0);
  for (std::size_t g = 0; g < options.groups.size(); ++g)
    for (const std::string& member : options.groups[g].parameters) {
      int& group = result[plan.owner(index_of(member))];
      DDP_EXPECT(group == 0, InvalidArgument, "parameter '", member,
                 "' is in parameter groups ", group - 1, " and ", g,
                 "; a parameter can be in one");
      group = static_cast<int>(g) + 1;
    }
  return result;
}

int DataParallel::Impl::index_of(const std::string& wanted) const {
  std::vector<std::string> names;
  for (const ParameterSpec& p : plan.parameters()) {
    if (p.name == wanted) return static_cast<int>(names.size());
    names.push_back(p.name);
  }
  throw InvalidArgument(concat("there is no parameter '", wanted,
                               "'; the nearest name is '",
                               nearest_name(wanted, names), "'"));
}

TensorView DataParallel::Impl::arena_weight(int owner) const {
  const Placement& at = plan.placement(owner);
  return memory[at.arena].weights.slice(at.range.begin, at.range.size());
}

TensorView DataParallel::Impl::weight(int parameter) const {
  DDP_EXPECT(
      parameter >= 0 && parameter < static_cast<int>(plan.parameters().size()),
      InvalidArgument, "parameter ", parameter, " of ",
      plan.parameters().size(), " does not exist");
  const int owner = plan.owner(parameter);
  const ParameterSpec& spec = plan.parameters()[owner];
  if (spec.adopted_weight)
    return {spec.adopted_weight, numel(spec), spec.dtype, world.device()};
  return arena_weight(owner);
}

TensorView DataParallel::Impl::gradient(int owner) const {
  const Placement& at = plan.placement(owner);
  return memory[at.arena].gradients.slice(at.range.begin, at.range.size());
}

void DataParallel::Impl::unfreeze(int parameter) {
  const int owner = plan.owner(parameter);
  const int arena = plan.unfreeze(
      parameter,
      gradient_dtype(options.precision, plan.parameters()[owner].dtype));
  expect_equal_plans(plan, world.control(), world.rank(),
                     Deadline::in(world.collective_timeout()));
  memory.push_back(allocate_arena(arena));
  reducer->add_arena(memory.back().gradients);
  optimizer->add_arena(memory.back());
  Stream stream(world.device());
  optimizer->load_masters(stream);
  synchronize(stream);
}

void DataParallel::Impl::expect_stream(StreamView stream,
                                       const char* call) const {
  DDP_EXPECT(stream.device == world.device(), InvalidArgument, "rank ",
             world.rank(), ": ", call, " was given a stream of ",
             name(stream.device), ", but this rank trains on ",
             name(world.device()));
}

}  // namespace ddp
