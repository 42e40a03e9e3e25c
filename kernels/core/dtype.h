/// \file
/// Element types of tensors: their sizes, names and host representations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ddp {

enum class DType : std::uint8_t {
  kFloat32,
  kFloat64,
  kBFloat16,
  kFloat16,
  kInt8,
  kUInt8,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
};

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kInt8:
    case DType::kUInt8: return 1;
    case DType::kBFloat16:
    case DType::kFloat16: return 2;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUInt32: return 4;
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUInt64: return 8;
  }
  return 0;
}

/// NumPy's name of the type, such as "float32" or "bfloat16".
constexpr std::string_view name(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32: return "float32";
    case DType::kFloat64: return "float64";
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat16: return "float16";
    case DType::kInt8: return "int8";
    case DType::kUInt8: return "uint8";
    case DType::kInt32: return "int32";
    case DType::kUInt32: return "uint32";
    case DType::kInt64: return "int64";
    case DType::kUInt64: return "uint64";
  }
  return "unknown";
}

constexpr bool is_floating(DType dtype) noexcept {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 ||
         dtype == DType::kBFloat16 || dtype == DType::kFloat16;
}

}  // namespace ddp
