#include "libddp/device/event.h"

#include <chrono>

#include "kernels/core/error.h"
#include "libddp/device/stream.h"

#if DDP_HAS_CUDA
#include "libddp/device/cuda_check.h"
#endif

namespace ddp {

#if DDP_HAS_CUDA

// On the CPU a timed event holds the host's clock instead of a handle.
struct Event::Impl {
  Device device;
  cudaEvent_t event = nullptr;
  std::chrono::steady_clock::time_point recorded_at;

  Impl(Device on, bool timed) : device(on) {
    if (device.is_cpu()) return;
    DeviceGuard guard(device);
    DDP_CUDA(cudaEventCreateWithFlags(
        &event, timed ? cudaEventDefault : cudaEventDisableTiming));
  }
  ~Impl() {
    if (event != nullptr) (void)cudaEventDestroy(event);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
};

void Event::record(StreamView stream) {
  if (impl_->event == nullptr) {
    impl_->recorded_at = std::chrono::steady_clock::now();
    return;
  }
  DDP_CUDA(
      cudaEventRecord(impl_->event, static_cast<cudaStream_t>(stream.handle)));
}

void Event::block(StreamView stream) const {
  if (impl_->event == nullptr) return;
  if (stream.device.is_cpu()) return synchronize();
  DDP_CUDA(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream.handle),
                               impl_->event, 0));
}

bool Event::is_complete() const {
  if (impl_->event == nullptr) return true;
  const cudaError_t result = cudaEventQuery(impl_->event);
  if (result == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  DDP_CUDA(result);
  return true;
}

void Event::synchronize() const {
  if (impl_->event != nullptr) DDP_CUDA(cudaEventSynchronize(impl_->event));
}

float Event::elapsed_ms(const Event& start, const Event& end) {
  if (start.impl_->event == nullptr) {
    return std::chrono::duration<float, std::milli>(end.impl_->recorded_at -
                                                    start.impl_->recorded_at)
        .count();
  }
  float elapsed = 0;
  DDP_CUDA(
      cudaEventElapsedTime(&elapsed, start.impl_->event, end.impl_->event));
  return elapsed;
}

#else

struct Event::Impl {
  Device device;
  std::chrono::steady_clock::time_point recorded_at;

  Impl(Device on, bool) : device(on) { DeviceGuard guard(device); }
};

void Event::record(StreamView) {
  impl_->recorded_at = std::chrono::steady_clock::now();
}

void Event::block(StreamView) const {}

bool Event::is_complete() const { return true; }

void Event::synchronize() const {}

float Event::elapsed_ms(const Event& start, const Event& end) {
  return std::chrono::duration<float, std::milli>(end.impl_->recorded_at -
                                                  start.impl_->recorded_at)
      .count();
}

#endif

Event::Event(Device device, bool timed)
    : impl_(std::make_unique<Impl>(device, timed)) {}
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;

}  // namespace ddp
