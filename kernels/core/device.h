/// \file
/// Names of devices and views of streams; neither owns anything.
#pragma once

#include <cstdint>
#include <string>

namespace ddp {

enum class DeviceType : std::uint8_t { kCpu, kCuda };

/// Host memory, or one GPU by its index among those visible to the process.
struct Device {
  DeviceType type = DeviceType::kCpu;
  int index = 0;

  static constexpr Device cpu() noexcept { return {}; }
  static constexpr Device cuda(int index) noexcept {
    return {DeviceType::kCuda, index};
  }
  constexpr bool is_cpu() const noexcept { return type == DeviceType::kCpu; }
  constexpr bool is_cuda() const noexcept { return type == DeviceType::kCuda; }
  friend constexpr bool operator==(const Device&, const Device&) = default;
};

/// "cpu" or "cuda:1".
inline std::string name(Device device) {
  return device.is_cpu() ? "cpu" : "cuda:" + std::to_string(device.index);
}

/// A stream of work that somebody else owns.
///
/// On a GPU `handle` is a cudaStream_t. On the CPU work runs on the calling
/// thread and is complete when the call returns, so `handle` is unused.
struct StreamView {
  Device device;
  void* handle = nullptr;

  static constexpr StreamView cpu() noexcept { return {}; }
  friend constexpr bool operator==(const StreamView&,
                                   const StreamView&) = default;
};

}  // namespace ddp
