#include "libddp/device/buffer.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/core/error.h"
#include "libddp/device/stream.h"

#if DDP_HAS_CUDA
#include "libddp/device/cuda_check.h"
#endif

namespace ddp {
namespace {

constexpr std::size_t kAlignment = 256;

Buffer allocate_host(std::size_t bytes) {
  // Rounded up because aligned_alloc wants a multiple of the alignment.
  const std::size_t rounded =
      bytes + kAlignment < bytes
          ? 0
          : (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* data = rounded == 0 ? nullptr : std::aligned_alloc(kAlignment, rounded);
  DDP_EXPECT(data != nullptr, DeviceError, "cannot allocate ", bytes,
             " bytes of host memory");
  return Buffer(data, bytes, Device::cpu(), [](void* p) { std::free(p); });
}

}  // namespace

Buffer::Buffer(void* data, std::size_t bytes, Device device, Release release)
    : data_(data),
      bytes_(bytes),
      device_(device),
      release_(std::move(release)) {}

Buffer::~Buffer() {
  if (data_ != nullptr && release_) release_(data_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      device_(other.device_),
      release_(std::move(other.release_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  std::swap(release_, other.release_);
  return *this;
}

#if DDP_HAS_CUDA

Buffer Buffer::allocate(std::size_t bytes, Device device) {
  if (bytes == 0) return Buffer(nullptr, 0, device, {});
  if (device.is_cpu()) return allocate_host(bytes);
  DeviceGuard guard(device);
  void* data = nullptr;
  const cudaError_t result = cudaMalloc(&data, bytes);
  if (result != cudaSuccess) {
    (void)cudaGetLastError();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    (void)cudaMemGetInfo(&free_bytes, &total_bytes);
    throw DeviceError(concat("cannot allocate ", bytes, " bytes on ",
                             name(device), ": ", cudaGetErrorString(result),
                             "; ", free_bytes, " of ", total_bytes,
                             " bytes are free"));
  }
  return Buffer(data, bytes, device, [](void* p) { (void)cudaFree(p); });
}

Buffer Buffer::allocate_pinned(std::size_t bytes, Device device) {
  if (bytes == 0) return Buffer(nullptr, 0, Device::cpu(), {});
  if (device.is_cpu()) return allocate_host(bytes);
  DeviceGuard guard(device);
  void* data = nullptr;
  const cudaError_t result = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (result != cudaSuccess) {
    (void)cudaGetLastError();
    throw DeviceError(concat(
        "cannot allocate ", bytes,
        " bytes of page-locked host memory: ", cudaGetErrorString(result),
        "; see `ulimit -l` and the memory of the host"));
  }
  return Buffer(data, bytes, Device::cpu(),
                [](void* p) { (void)cudaFreeHost(p); });
}

void copy_bytes(void* destination, const void* source, std::size_t bytes,
                StreamView stream) {
  if (bytes == 0 || destination == source) return;
  if (stream.device.is_cpu()) {
    std::memmove(destination, source, bytes);
    return;
  }
  DDP_CUDA(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault,
                           static_cast<cudaStream_t>(stream.handle)));
}

void zero_bytes(void* destination, std::size_t bytes, StreamView stream) {
  if (bytes == 0) return;
  if (stream.device.is_cpu()) {
    std::memset(destination, 0, bytes);
    return;
  }
  DDP_CUDA(cudaMemsetAsync(destination, 0, bytes,
                           static_cast<cudaStream_t>(stream.handle)));
}

#else

Buffer Buffer::allocate(std::size_t bytes, Device device) {
  DeviceGuard guard(device);  // refuses a GPU
  if (bytes == 0) return Buffer(nullptr, 0, device, {});
  return allocate_host(bytes);
}

Buffer Buffer::allocate_pinned(std::size_t bytes, Device device) {
  return allocate(bytes, device);
}

void copy_bytes(void* destination, const void* source, std::size_t bytes,
                StreamView stream) {
  DeviceGuard guard(stream.device);
  if (bytes != 0) std::memmove(destination, source, bytes);
}

void zero_bytes(void* destination, std::size_t bytes, StreamView stream) {
  DeviceGuard guard(stream.device);
  if (bytes != 0) std::memset(destination, 0, bytes);
}

#endif

}  // namespace ddp
