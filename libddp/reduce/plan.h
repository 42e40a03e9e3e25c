/// \file
/// Plan: which parameters exist, in which arenas and buckets, and the one
/// order in which buckets are reduced. Arithmetic, and one comparison.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libddp/bootstrap/control_plane.h"
#include "libddp/reduce/bucket_layout.h"
#include "libddp/reduce/parameter.h"

namespace ddp {

/// Parameters of one dtype that share a contiguous run of memory.
struct ArenaPlan {
  DType weight_dtype = DType::kFloat32;
  DType gradient_dtype = DType::kFloat32;
  bool trainable = true;
  std::vector<int> parameters;  ///< indices of ParameterSpecs, ascending
  BucketLayout layout;          ///< over positions in `parameters`
};

/// Names a bucket over all arenas.
struct BucketRef {
  int arena = 0;
  int bucket = 0;
  friend bool operator==(const BucketRef&, const BucketRef&) = default;
};

/// Where one parameter lies.
struct Placement {
  int arena = -1;
  int index = -1;   ///< in ArenaPlan::parameters
  int bucket = -1;  ///< in the arena
  ElementRange range;
};

struct PlanOptions {
  int world = 1;
  std::size_t bucket_bytes = std::size_t{64} << 20;
};

class Plan {
 public:
  Plan() = default;
  /// `gradient_dtypes[i]` is that of parameter i. Throws InvalidArgument on a
  /// name that is empty or given twice, a dtype that is not floating, or a
  /// tie that names no earlier parameter or one of another shape or dtype.
  Plan(std::vector<ParameterSpec> parameters,
       const std::vector<DType>& gradient_dtypes, const PlanOptions& options);

  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  const std::vector<ArenaPlan>& arenas() const { return arenas_; }
  /// Trainable buckets in the order in which they are reduced.
  const std::vector<BucketRef>& launch_order() const { return launch_order_; }
  /// Of any parameter; tied ones lie where their first one does.
  const Placement& placement(int parameter) const {
    return placements_[parameter];
  }
  /// The parameter whose memory `parameter` has: itself unless tied.
  int owner(int parameter) const { return owners_[parameter]; }
  /// Parameters that share this owner's memory, itself included.
  int sharers(int owner) const { return sharers_[owner]; }
  int world() const { return options_.world; }

  /// Replaces the launch order. REQUIRES: a permutation of the old one, equal
  /// on all ranks.
  void set_launch_order(std::vector<BucketRef> order);
  /// Moves a frozen parameter to the trainable ones: an arena over the same
  /// elements is appended, and its bucket is launched last. Returns the new
  /// arena's index; `memory_arena`, `memory_offset` tell whose memory it has.
  int unfreeze(int parameter, DType gradient_dtype);
  /// For an arena made by unfreeze(): the frozen arena its weights lie in and
  /// at which element; {-1, 0} for the others.
  std::pair<int, std::int64_t> weights_within(int arena) const;

  /// 64-bit hash of everything that must be equal on all ranks.
  std::uint64_t hash() const;

 private:
  std::vector<ParameterSpec> parameters_;
  PlanOptions options_;
  std::vector<ArenaPlan> arenas_;
  std::vector<std::pair<int, std::int64_t>> within_;
  std::vector<Placement> placements_;
  std::vector<int> owners_;
  std::vector<int> sharers_;
  std::vector<BucketRef> launch_order_;
};

/// Collective: throws InvalidArgument on every rank when plans differ, naming
/// the first parameter that differs and both versions.
void expect_equal_plans(const Plan& plan, ControlPlane& control, int rank,
                        Deadline deadline);

}  // namespace ddp
