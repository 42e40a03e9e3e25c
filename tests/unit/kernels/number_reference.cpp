#include "tests/unit/kernels/number_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace ddp::test {
namespace {

struct Format {
  int fraction;  ///< bits after the point
  int least;     ///< exponent of the smallest normal number
  int most;      ///< exponent of the largest number
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return {23, -126, 127};
    case DType::kBFloat16: return {7, -126, 127};
    case DType::kFloat16: return {10, -14, 15};
    default: return {52, -1022, 1023};
  }
}

double decode_sixteen(std::uint16_t bits, DType dtype) {
  const Format f = format_of(dtype);
  const int fraction = bits & ((1 << f.fraction) - 1);
  const int exponent = (bits & 0x7fff) >> f.fraction;
  const double sign = (bits & 0x8000) ? -1.0 : 1.0;
  if (exponent == f.most - f.least + 2)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, f.least - f.fraction);
  return sign * std::ldexp((1 << f.fraction) + fraction,
                           exponent - 1 + f.least - f.fraction);
}

std::uint16_t encode_sixteen(double value, DType dtype) {
  const Format f = format_of(dtype);
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(round_to(dtype, value));
  const int top = f.most - f.least + 2;
  const auto pack = [&](int exponent, int fraction) {
    return static_cast<std::uint16_t>(sign | (exponent << f.fraction) |
                                      fraction);
  };
  if (std::isnan(value)) return pack(top, 1 << (f.fraction - 1));
  if (std::isinf(magnitude)) return pack(top, 0);
  if (magnitude < std::ldexp(1.0, f.least))
    return pack(0,
                static_cast<int>(std::ldexp(magnitude, f.fraction - f.least)));
  const int exponent = std::ilogb(magnitude);
  const int whole =
      static_cast<int>(std::ldexp(magnitude, f.fraction - exponent));
  return pack(exponent - f.least + 1, whole - (1 << f.fraction));
}

template <typename T>
T load(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value,
              static_cast<const char*>(data) +
                  index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <typename T>
void store(void* data, std::int64_t index, T value) {
  std::memcpy(
      static_cast<char*>(data) + index * static_cast<std::int64_t>(sizeof(T)),
      &value, sizeof(T));
}

}  // namespace

double decode(DType dtype, const void* data, std::int64_t index) {
  if (dtype == DType::kFloat32)
    return static_cast<double>(load<float>(data, index));
  if (dtype == DType::kFloat64) return load<double>(data, index);
  return decode_sixteen(load<std::uint16_t>(data, index), dtype);
}

void encode(DType dtype, void* data, std::int64_t index, double value) {
  if (dtype == DType::kFloat32)
    return store(data, index, static_cast<float>(round_to(dtype, value)));
  if (dtype == DType::kFloat64) return store(data, index, value);
  store(data, index, encode_sixteen(value, dtype));
}

double spacing(DType dtype, double value) {
  const Format f = format_of(dtype);
  const int exponent =
      value == 0 ? f.least : std::max(std::ilogb(value), f.least);
  return std::ldexp(1.0, exponent - f.fraction);
}

double round_to(DType dtype, double value) {
  if (dtype == DType::kFloat64 || !std::isfinite(value)) return value;
  const double unit = spacing(dtype, value);
  const double rounded = std::nearbyint(value / unit) * unit;
  const Format f = format_of(dtype);
  if (std::fabs(rounded) >= std::ldexp(1.0, f.most + 1))
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

}  // namespace ddp::test
