/// \file
/// Machine: where a kernel test runs. The same tests are linked with the CPU
/// and with a GPU; machine() says with which.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/core/device.h"

namespace ddp::test {

class Machine {
 public:
  virtual ~Machine() = default;
  virtual StreamView stream() const = 0;
  /// Memory of the machine, aligned to 256 bytes.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  /// Both wait for the stream first.
  virtual void write(void* to, const void* from, std::size_t bytes) = 0;
  virtual void read(void* to, const void* from, std::size_t bytes) = 0;
};

Machine& machine();
Machine& cpu_machine();

/// One value of a plain type in the machine's memory.
template <typename T>
class Value {
 public:
  explicit Value(const T& value = T{}, Machine& where = machine())
      : where_(where), memory_(where.allocate(sizeof(T))) {
    set(value);
  }
  void set(const T& value) { where_.write(get(), &value, sizeof(T)); }
  T value() const {
    T result;
    where_.read(&result, memory_.get(), sizeof(T));
    return result;
  }
  T* get() const { return static_cast<T*>(memory_.get()); }

 private:
  Machine& where_;
  std::shared_ptr<void> memory_;
};

/// Several of them.
template <typename T>
class Values {
 public:
  explicit Values(const std::vector<T>& values, Machine& where = machine())
      : where_(where),
        count_(values.size()),
        memory_(where.allocate(sizeof(T) * (count_ + 1))) {
    where.write(get(), values.data(), sizeof(T) * count_);
  }
  std::vector<T> values() const {
    std::vector<T> result(count_);
    where_.read(result.data(), memory_.get(), sizeof(T) * count_);
    return result;
  }
  T* get() const { return static_cast<T*>(memory_.get()); }

 private:
  Machine& where_;
  std::size_t count_;
  std::shared_ptr<void> memory_;
};

}  // namespace ddp::test
