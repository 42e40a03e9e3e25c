#include "tests/conformance/values.h"

#include <algorithm>
#include <cstring>

#include "kernels/core/half.h"
#include "libddp/device/stream.h"

namespace ddp::conformance {
namespace {

template <typename T>
T make(double value) {
  return static_cast<T>(value);
}
template <>
bfloat16 make<bfloat16>(double value) {
  return to_bfloat16(static_cast<float>(value));
}
template <>
float16 make<float16>(double value) {
  return to_float16(static_cast<float>(value));
}

template <typename T>
double show(T value) {
  return static_cast<double>(value);
}
template <>
double show<bfloat16>(bfloat16 value) {
  return to_float(value);
}
template <>
double show<float16>(float16 value) {
  return to_float(value);
}

template <typename F>
void with_type(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kFloat32: return f(float{});
    case DType::kFloat64: return f(double{});
    case DType::kBFloat16: return f(bfloat16{});
    case DType::kFloat16: return f(float16{});
    case DType::kInt8: return f(std::int8_t{});
    case DType::kUInt8: return f(std::uint8_t{});
    case DType::kInt32: return f(std::int32_t{});
    case DType::kUInt32: return f(std::uint32_t{});
    case DType::kInt64: return f(std::int64_t{});
    case DType::kUInt64: return f(std::uint64_t{});
  }
}

}  // namespace

void Array::fill(const std::function<double(std::int64_t)>& value) {
  std::vector<char> host(view_.bytes());
  with_type(view_.dtype, [&]<typename T>(T) {
    T* data = reinterpret_cast<T*>(host.data());
    for (std::int64_t i = 0; i < view_.numel; ++i) data[i] = make<T>(value(i));
  });
  copy_bytes(view_.data, host.data(), host.size(), rank_->stream);
  synchronize(rank_->stream);  // `host` goes
}

std::int64_t Array::differences(
    const std::function<double(std::int64_t)>& expected,
    std::string* text) const {
  std::vector<char> host(view_.bytes());
  copy_bytes(host.data(), view_.data, host.size(), rank_->stream);
  synchronize(rank_->stream);
  std::int64_t count = 0;
  with_type(view_.dtype, [&]<typename T>(T) {
    const T* data = reinterpret_cast<const T*>(host.data());
    for (std::int64_t i = 0; i < view_.numel; ++i) {
      const T right = make<T>(expected(i));
      if (std::memcmp(&data[i], &right, sizeof(T)) == 0) continue;
      if (count++ == 0) {
        *text = concat("rank ", rank_->rank(), " element ", i, " of ",
                       view_.numel, " ", name(view_.dtype), " is ",
                       show(data[i]), ", not ", show(right));
      }
    }
  });
  return count;
}

double reduced_value(ReduceOp op, DType dtype, int size, std::int64_t i) {
  int sum = 0;
  int largest = value_of(0, i);
  int smallest = largest;
  for (int rank = 0; rank < size; ++rank) {
    const int value = value_of(rank, i);
    sum += value;
    largest = std::max(largest, value);
    smallest = std::min(smallest, value);
  }
  switch (op) {
    case ReduceOp::kSum: return sum;
    case ReduceOp::kMax: return largest;
    case ReduceOp::kMin: return smallest;
    case ReduceOp::kAverage: break;
  }
  if (dtype == DType::kFloat64) return static_cast<double>(sum) / size;
  return static_cast<float>(sum) / static_cast<float>(size);
}

}  // namespace ddp::conformance
