/// \file
/// Staging: fp32 views of tensors that may be bf16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/tensor.h"

namespace gpt {

/// Memory that one operation works in, kept between operations.
class ScratchPool {
 public:
  /// `count` floats, valid until reset(); 64-byte aligned, uninitialised.
  float* take(std::int64_t count);
  void reset() noexcept { used_ = 0; }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::int64_t capacity = 0;
    float* data = nullptr;
  };
  std::vector<Block> blocks_;
  std::size_t used_ = 0;
};

/// Lets one operation compute in fp32 whatever its tensors hold: an fp32
/// tensor is used in place, a bf16 tensor is widened into scratch first and
/// rounded back, once, by finish(). One Staging lives as long as one
/// operation.
class Staging {
 public:
  explicit Staging(ScratchPool& pool) : pool_(pool) { pool_.reset(); }

  const float* read(ddp::TensorView tensor, std::int64_t count);
  /// Contents are undefined until written.
  float* write(ddp::TensorView tensor, std::int64_t count);
  /// Holds the tensor's values, receives new ones.
  float* update(ddp::TensorView tensor, std::int64_t count);
  /// Scratch of this operation.
  float* scratch(std::int64_t count) { return pool_.take(count); }
  /// Rounds what was written to bf16 tensors.
  void finish();

 private:
  struct Pending {
    const float* from;
    ddp::TensorView to;
    std::int64_t count;
  };
  ScratchPool& pool_;
  std::vector<Pending> pending_;
};

}  // namespace gpt
