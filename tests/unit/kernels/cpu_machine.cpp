#include <cstdlib>
#include <new>

#include "tests/unit/kernels/machine.h"

namespace ddp::test {
namespace {

class CpuMachine : public Machine {
 public:
  StreamView stream() const override { return StreamView::cpu(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    void* memory = std::aligned_alloc(256, (bytes + 256) / 256 * 256);
    if (memory == nullptr) throw std::bad_alloc();
    return {memory, std::free};
  }
  void write(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void read(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace

Machine& cpu_machine() {
  static CpuMachine instance;
  return instance;
}

}  // namespace ddp::test
