/// \file
/// The element types that safetensors files may hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/core/dtype.h"

namespace ddp {

struct SafetensorsType {
  std::string_view name;
  std::int64_t bytes;
  /// What libddp computes with; nothing for types it only carries.
  std::optional<DType> dtype;
};

/// In the order in which the Python package lays tensors out. Types of less
/// than a byte are not among them.
inline constexpr SafetensorsType kSafetensorsTypes[] = {
    {"U64", 8, DType::kUInt64},   {"I64", 8, DType::kInt64},
    {"F64", 8, DType::kFloat64},  {"C64", 8, std::nullopt},
    {"F32", 4, DType::kFloat32},  {"U32", 4, DType::kUInt32},
    {"I32", 4, DType::kInt32},    {"BF16", 2, DType::kBFloat16},
    {"F16", 2, DType::kFloat16},  {"U16", 2, std::nullopt},
    {"I16", 2, std::nullopt},     {"F8_E8M0", 1, std::nullopt},
    {"F8_E4M3", 1, std::nullopt}, {"F8_E5M2", 1, std::nullopt},
    {"I8", 1, DType::kInt8},      {"U8", 1, DType::kUInt8},
    {"BOOL", 1, std::nullopt},
};

/// Null if files do not hold such a type.
constexpr const SafetensorsType* find_type(std::string_view name) noexcept {
  for (const SafetensorsType& type : kSafetensorsTypes)
    if (type.name == name) return &type;
  return nullptr;
}

constexpr const SafetensorsType& type_of(DType dtype) noexcept {
  const SafetensorsType* type = kSafetensorsTypes;
  while (type->dtype != dtype) ++type;
  return *type;
}

}  // namespace ddp
