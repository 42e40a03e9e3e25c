#include "libddp/reduce/plan.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>

#include "kernels/core/error.h"

namespace ddp {
namespace {

using Json = nlohmann::json;

/// Owners of all parameters; checks names, dtypes and ties on the way.
std::vector<int> find_owners(const std::vector<ParameterSpec>& parameters) {
  std::unordered_map<std::string, int> by_name;
  std::vector<int> owners;
  for (int i = 0; i < static_cast<int>(parameters.size()); ++i) {
    const ParameterSpec& p = parameters[i];
    DDP_EXPECT(!p.name.empty(), InvalidArgument, "parameter ", i,
               " has no name; every parameter needs one of its own");
    DDP_EXPECT(by_name.emplace(p.name, i).second, InvalidArgument,
               "parameters ", by_name[p.name], " and ", i,
               " have the same name '", p.name, "'");
    DDP_EXPECT(is_floating(p.dtype), InvalidArgument, "parameter ", to_text(p),
               " is not of a floating type: train float32, float64, bfloat16 "
               "or float16, and keep other tensors outside");
    if (p.tied_to.empty()) {
      owners.push_back(i);
      continue;
    }
    const auto found = by_name.find(p.tied_to);
    DDP_EXPECT(found != by_name.end() && found->second != i, InvalidArgument,
               "parameter ", to_text(p), " is tied to '", p.tied_to,
               "', which is not registered before it");
    const ParameterSpec& other = parameters[found->second];
    DDP_EXPECT(p.dtype == other.dtype && p.shape == other.shape,
               InvalidArgument, "parameter ", to_text(p),
               " is tied to one of another shape or dtype: ", to_text(other));
    owners.push_back(owners[found->second]);
  }
  return owners;
}

class Hasher {  // FNV-1a over bytes
 public:
  void add(std::string_view bytes) {
    for (const unsigned char c : bytes) value_ = (value_ ^ c) * 1099511628211u;
    add_number(static_cast<std::int64_t>(bytes.size()));
  }
  void add_number(std::int64_t number) {
    for (int i = 0; i < 8; ++i)
      value_ = (value_ ^ ((number >> (8 * i)) & 255)) * 1099511628211u;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

}  // namespace

Plan::Plan(std::vector<ParameterSpec> parameters,
           const std::vector<DType>& gradient_dtypes,
           const PlanOptions& options)
    : parameters_(std::move(parameters)),
      options_(options),
      placements_(parameters_.size()),
      owners_(find_owners(parameters_)),
      sharers_(parameters_.size(), 0) {
  std::map<std::tuple<bool, DType, DType>, int> arena_of;
  for (int i = 0; i < static_cast<int>(parameters_.size()); ++i) {
    ++sharers_[owners_[i]];
    if (owners_[i] != i) continue;
    const ParameterSpec& p = parameters_[i];
    const auto key =
        std::tuple(!p.requires_grad, p.dtype, gradient_dtypes.at(i));
    const auto [found, is_new] =
        arena_of.emplace(key, static_cast<int>(arenas_.size()));
    if (is_new)
      arenas_.push_back({p.dtype, gradient_dtypes[i], p.requires_grad, {}, {}});
    arenas_[found->second].parameters.push_back(i);
  }
  within_.assign(arenas_.size(), {-1, 0});
  for (int a = 0; a < static_cast<int>(arenas_.size()); ++a) {
    ArenaPlan& arena = arenas_[a];
    std::vector<std::int64_t> numels;
    std::int64_t total = 0;
    for (const int p : arena.parameters) {
      numels.push_back(numel(parameters_[p]));
      total += numels.back();
    }
    arena.layout =
        BucketLayout(numels, options_.world,
                     bucket_elements(total, size_of(arena.gradient_dtype),
                                     options_.bucket_bytes),
                     /*separate=*/!arena.trainable);
    for (int i = 0; i < static_cast<int>(arena.parameters.size()); ++i)
      placements_[arena.parameters[i]] = {a, i, arena.layout.bucket_of(i),
                                          arena.layout.parameter(i)};
    if (arena.trainable)
      for (int b = 0; b < static_cast<int>(arena.layout.buckets().size()); ++b)
        launch_order_.push_back({a, b});
  }
  for (std::size_t i = 0; i < owners_.size(); ++i)
    placements_[i] = placements_[owners_[i]];
  // A bucket is complete when its first parameter is, which backward reaches
  // last.
  const auto last_reached = [&](BucketRef ref) {
    const ArenaPlan& arena = arenas_[ref.arena];
    return arena
        .parameters[arena.layout.buckets()[ref.bucket].parameters.back()];
  };
  std::stable_sort(launch_order_.begin(), launch_order_.end(),
                   [&](BucketRef a, BucketRef b) {
                     return last_reached(a) > last_reached(b);
                   });
}

void Plan::set_launch_order(std::vector<BucketRef> order) {
  DDP_EXPECT(order.size() == launch_order_.size(), InvalidArgument,
             "a new launch order has ", order.size(), " buckets instead of ",
             launch_order_.size());
  launch_order_ = std::move(order);
}

int Plan::unfreeze(int parameter, DType gradient_dtype) {
  const int owner = owners_.at(parameter);
  const Placement old = placements_[owner];
  DDP_EXPECT(!arenas_[old.arena].trainable, InvalidArgument, "parameter ",
             to_text(parameters_[owner]), " is not frozen");
  const std::int64_t count = numel(parameters_[owner]);
  ArenaPlan arena{parameters_[owner].dtype,
                  gradient_dtype,
                  true,
                  {owner},
                  BucketLayout({&count, 1}, options_.world, 1)};
  const int index = static_cast<int>(arenas_.size());
  arenas_.push_back(std::move(arena));
  within_.emplace_back(
      old.arena, arenas_[old.arena].layout.buckets()[old.bucket].range.begin);
  launch_order_.push_back({index, 0});
  for (std::size_t i = 0; i < owners_.size(); ++i)
    if (owners_[i] == owner) {
      placements_[i] = {index, 0, 0, {0, count}};
      parameters_[i].requires_grad = true;
    }
  return index;
}

std::pair<int, std::int64_t> Plan::weights_within(int arena) const {
  return within_.at(arena);
}

std::uint64_t Plan::hash() const {
  Hasher hasher;
  hasher.add_number(options_.world);
  for (const ParameterSpec& p : parameters_) hasher.add(to_text(p));
  for (const ArenaPlan& arena : arenas_) {
    hasher.add(name(arena.weight_dtype));
    hasher.add(name(arena.gradient_dtype));
    hasher.add_number(arena.trainable);
    for (const auto& bucket : arena.layout.buckets())
      hasher.add_number(bucket.range.end);
  }
  for (const BucketRef ref : launch_order_) {
    hasher.add_number(ref.arena);
    hasher.add_number(ref.bucket);
  }
  return hasher.value();
}

void expect_equal_plans(const Plan& plan, ControlPlane& control, int rank,
                        Deadline deadline) {
  const std::string mine = std::to_string(plan.hash());
  const auto hashes = control.exchange("libddp/plan", mine, deadline);
  const auto differs = [&](const std::string& hash) {
    return hash != hashes[0];
  };
  const auto first = std::find_if(hashes.begin(), hashes.end(), differs);
  if (first == hashes.end()) return;

  Json list = Json::array();
  for (const ParameterSpec& p : plan.parameters()) list.push_back(to_text(p));
  const auto lists =
      control.exchange("libddp/plan/parameters", list.dump(), deadline);
  const int other = static_cast<int>(first - hashes.begin());
  const Json ours = Json::parse(lists[0]);
  const Json theirs = Json::parse(lists[other]);
  const std::size_t common = std::min(ours.size(), theirs.size());
  std::size_t i = 0;
  while (i < common && ours[i] == theirs[i]) ++i;
  const auto version = [&](const Json& all) {
    return i < all.size()
               ? all[i].get<std::string>()
               : concat("nothing (it has ", all.size(), " parameters)");
  };
  DDP_EXPECT(i < ours.size() || i < theirs.size(), InvalidArgument, "rank ",
             rank, ": the options of DataParallel differ between rank 0 and ",
             "rank ", other, " (the parameters are equal): give all ranks the ",
             "same bucket_bytes, precision and stage");
  throw InvalidArgument(concat(
      "rank ", rank, ": the models differ at parameter ", i, ": rank 0 has ",
      version(ours), ", rank ", other, " has ", version(theirs),
      "; build the same model, in the same order, on every rank"));
}

}  // namespace ddp
