#include <omp.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

#include "benchmarks/kernels/probe.h"
#include "kernels/core/error.h"

namespace ddp::bench {
namespace {

class CpuProbe : public Probe {
 public:
  StreamView stream() const override { return StreamView::cpu(); }

  std::string machine() const override {
    std::ifstream info("/proc/cpuinfo");
    std::string line;
    std::string model = "CPU";
    while (std::getline(info, line))
      if (line.rfind("model name", 0) == 0) {
        model = line.substr(line.find(": ") + 2);
        break;
      }
    return concat(model, ", ", omp_get_max_threads(), " threads");
  }

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory == nullptr) throw std::bad_alloc();
    for_slices(bytes, [&](std::size_t begin, std::size_t n) {
      std::memset(static_cast<char*>(memory) + begin, 0, n);
    });
    return {memory, std::free};
  }

  void write(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    for_slices(bytes, [&](std::size_t begin, std::size_t n) {
      std::memcpy(static_cast<char*>(to) + begin,
                  static_cast<const char*>(from) + begin, n);
    });
  }

  std::vector<double> time(const std::function<void()>& work,
                           int repeat) override {
    using Clock = std::chrono::steady_clock;
    for (int i = 0; i < 2; ++i) work();
    std::vector<double> seconds;
    for (int i = 0; i < repeat; ++i) {
      const auto begin = Clock::now();
      work();
      seconds.push_back(
          std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return seconds;
  }

 private:
  template <typename Body>
  static void for_slices(std::size_t bytes, const Body& body) {
#pragma omp parallel
    {
      const auto threads = static_cast<std::size_t>(omp_get_num_threads());
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      const std::size_t begin = bytes / threads * thread;
      const std::size_t end =
          thread + 1 == threads ? bytes : bytes / threads * (thread + 1);
      body(begin, end - begin);
    }
  }
};

}  // namespace

std::unique_ptr<Probe> make_cpu_probe() { return std::make_unique<CpuProbe>(); }

}  // namespace ddp::bench
