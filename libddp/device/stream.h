/// \file
/// Stream: an owned queue of device work, and the guard that selects a device.
#pragma once

#include <memory>
#include <string>

#include "kernels/core/device.h"

namespace ddp {

enum class StreamPriority { kNormal, kHigh };

/// Owns a stream that does not synchronise with the default stream. On the
/// CPU it is a name for the calling thread.
class Stream {
 public:
  explicit Stream(Device device,
                  StreamPriority priority = StreamPriority::kNormal);
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  StreamView view() const noexcept { return view_; }
  operator StreamView() const noexcept { return view_; }

 private:
  StreamView view_;
  bool owned_ = false;
};

/// Makes the host wait until all work on `stream` is done.
void synchronize(StreamView stream);

/// Makes `device` current for the calling thread until it is destroyed.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = -1;
};

/// GPUs visible to this process; 0 without a driver or a CUDA build. Never
/// creates a context.
int visible_gpu_count() noexcept;

/// PCI bus id of a GPU, such as "0000:1b:00.0"; empty for the CPU. Creates no
/// context.
std::string bus_id(Device device);

}  // namespace ddp
