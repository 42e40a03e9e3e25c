#include "libddp/device/stream.h"

#include <cctype>
#include <utility>

#include "kernels/core/error.h"

#if DDP_HAS_CUDA
#include "libddp/device/cuda_check.h"
#endif

namespace ddp {

#if DDP_HAS_CUDA

Stream::Stream(Device device, StreamPriority priority)
    : view_{device, nullptr} {
  if (device.is_cpu()) return;
  DeviceGuard guard(device);
  int least = 0;
  int greatest = 0;
  DDP_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  DDP_CUDA(cudaStreamCreateWithPriority(
      &stream, cudaStreamNonBlocking,
      priority == StreamPriority::kHigh ? greatest : 0));
  view_.handle = stream;
  owned_ = true;
}

Stream::~Stream() {
  if (owned_) (void)cudaStreamDestroy(static_cast<cudaStream_t>(view_.handle));
}

void synchronize(StreamView stream) {
  if (stream.device.is_cpu()) return;
  DeviceGuard guard(stream.device);
  DDP_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(stream.handle)));
}

DeviceGuard::DeviceGuard(Device device) {
  if (device.is_cpu()) return;
  int current = 0;
  DDP_CUDA(cudaGetDevice(&current));
  if (current == device.index) return;
  DDP_CUDA(cudaSetDevice(device.index));
  previous_ = current;
}

DeviceGuard::~DeviceGuard() {
  if (previous_ >= 0) (void)cudaSetDevice(previous_);
}

int visible_gpu_count() noexcept {
  // Initialises the driver but makes no context: that is cudaSetDevice's.
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  (void)cudaGetLastError();
  return 0;
}

std::string bus_id(Device device) {
  if (device.is_cpu()) return {};
  char text[32] = {};
  DDP_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, device.index));
  std::string id = text;
  for (char& c : id)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return id;
}

#else

namespace {
[[noreturn]] void throw_no_cuda(Device device) {
  throw Unavailable(concat("device ", name(device),
                           " was asked for, but this build has no CUDA; "
                           "configure with -DLIBDDP_CUDA=ON"));
}
}  // namespace

Stream::Stream(Device device, StreamPriority) : view_{device, nullptr} {
  if (device.is_cuda()) throw_no_cuda(device);
}

Stream::~Stream() = default;

void synchronize(StreamView stream) {
  if (stream.device.is_cuda()) throw_no_cuda(stream.device);
}

DeviceGuard::DeviceGuard(Device device) {
  if (device.is_cuda()) throw_no_cuda(device);
}

DeviceGuard::~DeviceGuard() = default;

int visible_gpu_count() noexcept { return 0; }

std::string bus_id(Device device) {
  if (device.is_cuda()) throw_no_cuda(device);
  return {};
}

#endif

Stream::Stream(Stream&& other) noexcept
    : view_(other.view_), owned_(std::exchange(other.owned_, false)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(view_, other.view_);
  std::swap(owned_, other.owned_);
  return *this;
}

}  // namespace ddp
