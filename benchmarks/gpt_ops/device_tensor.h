/// \file
/// DeviceTensor: owned memory on a GPU that is filled and read by the host.
#pragma once

#include <cstring>
#include <vector>

#include "kernels/core/half.h"
#include "libddp/device/buffer.h"
#include "libddp/device/stream.h"

namespace bench {

/// Numbers as the checks see them, whatever a tensor's dtype.
using Values = std::vector<double>;

class DeviceTensor {
 public:
  /// Filled with the byte 0xff: NaN in either floating dtype.
  DeviceTensor(std::int64_t numel, ddp::DType dtype, ddp::StreamView stream)
      : stream_(stream),
        buffer_(ddp::Buffer::allocate(
            static_cast<std::size_t>(numel) * ddp::size_of(dtype),
            stream.device)),
        view_(buffer_.view(0, numel, dtype)) {
    const std::vector<unsigned char> poison(view_.bytes(), 0xff);
    write(poison.data());
  }
  DeviceTensor(const Values& values, ddp::DType dtype, ddp::StreamView stream)
      : DeviceTensor(static_cast<std::int64_t>(values.size()), dtype, stream) {
    std::vector<unsigned char> bytes(view_.bytes());
    const std::size_t size = ddp::size_of(dtype);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<float>(values[i]);
      const auto integer = static_cast<std::int32_t>(values[i]);
      const ddp::bfloat16 half = ddp::to_bfloat16(value);
      const void* from =
          dtype == ddp::DType::kFloat32 ? static_cast<const void*>(&value)
          : dtype == ddp::DType::kInt32 ? static_cast<const void*>(&integer)
                                        : static_cast<const void*>(&half);
      std::memcpy(bytes.data() + i * size, from, size);
    }
    write(bytes.data());
  }

  operator ddp::TensorView() const { return view_; }
  ddp::TensorView view() const { return view_; }

  std::vector<unsigned char> bytes() const {
    std::vector<unsigned char> copy(view_.bytes());
    ddp::copy_bytes(copy.data(), view_.data, copy.size(), stream_);
    ddp::synchronize(stream_);
    return copy;
  }
  Values values() const {
    const std::vector<unsigned char> raw = bytes();
    Values values(static_cast<std::size_t>(view_.numel));
    const std::size_t size = ddp::size_of(view_.dtype);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (view_.dtype == ddp::DType::kFloat32) {
        float value;
        std::memcpy(&value, raw.data() + i * size, size);
        values[i] = value;
      } else {
        ddp::bfloat16 half;
        std::memcpy(&half, raw.data() + i * size, size);
        values[i] = ddp::to_float(half);
      }
    }
    return values;
  }

 private:
  void write(const void* from) {
    ddp::copy_bytes(view_.data, from, view_.bytes(), stream_);
    ddp::synchronize(stream_);
  }

  ddp::StreamView stream_;
  ddp::Buffer buffer_;
  ddp::TensorView view_;
};

}  // namespace bench
