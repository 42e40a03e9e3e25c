/// \file
/// Buffer: owned memory on a device or page-locked on the host.
#pragma once

#include <cstddef>
#include <functional>

#include "kernels/core/tensor.h"

namespace ddp {

/// Owns a block of memory and frees it as it was allocated. Movable. Memory
/// starts on a multiple of 256 bytes. A buffer of 0 bytes holds null.
class Buffer {
 public:
  using Release = std::function<void(void*)>;

  Buffer() = default;
  /// Takes over `data`; `release` (may be empty) is called once.
  Buffer(void* data, std::size_t bytes, Device device, Release release);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  /// Memory of `device`, uninitialised. Throws DeviceError with the bytes
  /// asked for and, on a GPU, the bytes free.
  static Buffer allocate(std::size_t bytes, Device device);
  /// Host memory that a GPU copies to and from asynchronously; ordinary
  /// host memory when `device` is the CPU.
  static Buffer allocate_pinned(std::size_t bytes, Device device);

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }
  template <typename T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  /// `numel` elements from `byte_offset` on. REQUIRES: they lie inside.
  TensorView view(std::size_t byte_offset, std::int64_t numel,
                  DType dtype) const noexcept {
    return {static_cast<char*>(data_) + byte_offset, numel, dtype, device_};
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_;
  Release release_;
};

/// Copies between host and device memory in any direction, in stream order.
/// With pageable host memory on a GPU stream the host may wait.
void copy_bytes(void* destination, const void* source, std::size_t bytes,
                StreamView stream);

/// Sets bytes to zero, in stream order.
void zero_bytes(void* destination, std::size_t bytes, StreamView stream);

}  // namespace ddp
