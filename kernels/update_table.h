/// \file
/// UpdateTable: which runs of elements the norm and update passes walk.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/tensor.h"
#include "kernels/peer_list.h"

namespace ddp {

/// One contiguous run of elements that share their hyper-parameters.
///
/// Master weights and moments are fp32, or fp64 where weights are fp64.
struct UpdateRun {
  /// Where the new weights go; entry 0 is also read when `master` is null.
  PeerList weight;
  /// Weights that the update reads and writes in full precision, or null.
  void* master = nullptr;
  /// First moment (Adam) or momentum buffer (SGD); null where not used.
  void* moment1 = nullptr;
  /// Second moment (Adam); null where not used.
  void* moment2 = nullptr;
  /// Summed in list order.
  PeerList gradient;
  std::int64_t numel = 0;
  /// Position of element 0 in the owner's numbering; what a norm reports as
  /// non-finite is a position.
  std::int64_t position = 0;
  /// Index of element 0 within its parameter: the key of random rounding.
  std::int64_t key = 0;
  /// Which entry of the hyper-parameters applies.
  std::int32_t group = 0;
  /// Index into ParameterClocks, or -1 for the common clock.
  std::int32_t clock = -1;
};

/// A list of runs prepared once for one device: cut into chunks of equal work
/// and, for a GPU, copied there, so that a pass is one launch however many
/// runs there are. Owns the copy; the runs' memory belongs to the caller and
/// must outlive the table. Movable. Safe to use from one thread at a time.
class UpdateTable {
 public:
  struct Prepared;  // device-specific form, private to the twins

  UpdateTable();
  /// All runs hold weights of `weight_dtype` and gradients of
  /// `gradient_dtype`. Throws InvalidArgument on an empty PeerList, a count
  /// over kMaxPeers, a negative length, or a dtype that is not floating.
  UpdateTable(std::vector<UpdateRun> runs, DType weight_dtype,
              DType gradient_dtype, Device device);
  ~UpdateTable();
  UpdateTable(UpdateTable&&) noexcept;
  UpdateTable& operator=(UpdateTable&&) noexcept;

  const std::vector<UpdateRun>& runs() const noexcept { return runs_; }
  DType weight_dtype() const noexcept { return weight_dtype_; }
  DType gradient_dtype() const noexcept { return gradient_dtype_; }
  Device device() const noexcept { return device_; }
  /// Elements over all runs.
  std::int64_t numel() const noexcept { return numel_; }
  Prepared* prepared() const noexcept { return prepared_.get(); }

 private:
  std::vector<UpdateRun> runs_;
  DType weight_dtype_ = DType::kFloat32;
  DType gradient_dtype_ = DType::kFloat32;
  Device device_;
  std::int64_t numel_ = 0;
  std::unique_ptr<Prepared> prepared_;
};

}  // namespace ddp
