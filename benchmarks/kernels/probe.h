/// \file
/// Probe: memory and time of the device that a benchmark runs on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/core/device.h"

namespace ddp::bench {

class Probe {
 public:
  virtual ~Probe() = default;
  virtual StreamView stream() const = 0;
  virtual std::string machine() const = 0;
  /// Zeroed, first touched by the threads that will use it.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  virtual void write(void* to, const void* from, std::size_t bytes) = 0;
  /// Copies by the system's own means: the floor that others are judged by.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  /// Seconds of each of `repeat` calls of `work`, after some that warm up.
  virtual std::vector<double> time(const std::function<void()>& work,
                                   int repeat) = 0;
};

std::unique_ptr<Probe> make_cpu_probe();
/// Throws Unavailable in a build without CUDA.
std::unique_ptr<Probe> make_cuda_probe();

}  // namespace ddp::bench
