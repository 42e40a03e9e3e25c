/// \file
/// TensorView: a contiguous run of elements that somebody else owns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/device.h"
#include "kernels/core/dtype.h"
#include "kernels/core/error.h"

namespace ddp {

/// `numel` contiguous elements of `dtype` at `data`, on `device`. Copying a
/// view copies no element; a view frees nothing.
struct TensorView {
  void* data = nullptr;
  std::int64_t numel = 0;
  DType dtype = DType::kFloat32;
  Device device;

  std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(numel) * size_of(dtype);
  }
  /// The `count` elements from `begin` on. REQUIRES: they lie inside.
  TensorView slice(std::int64_t begin, std::int64_t count) const noexcept {
    return {static_cast<char*>(data) +
                static_cast<std::size_t>(begin) * size_of(dtype),
            count, dtype, device};
  }
  template <typename T>
  T* as() const noexcept {
    return static_cast<T*>(data);
  }
};

}  // namespace ddp
