/// \file
/// The loops of tiles.h. Included by one source per instruction set, which
/// defines DDP_TILES_NAME, the name of its TileSet. Everything here has
/// internal linkage and calls only what is always inlined, so that no code
/// of one instruction set is linked into another's callers.

#include "kernels/cpu/tiles.h"
#include "kernels/formula/checksum.h"
#include "kernels/formula/norm.h"

namespace ddp::cpu {
namespace {

using formula::narrow;
using formula::widen;

template <typename S, typename T>
void widen_tile(S* __restrict out, const void* in, std::int64_t n) {
  const T* __restrict from = static_cast<const T*>(in);
  for (std::int64_t i = 0; i < n; ++i) out[i] = widen<S>(from[i]);
}

template <typename S, typename T>
void add_tile(S* __restrict out, const void* in, std::int64_t n) {
  const T* __restrict from = static_cast<const T*>(in);
  for (std::int64_t i = 0; i < n; ++i) out[i] += widen<S>(from[i]);
}

template <typename S, typename T>
void narrow_tile(void* out, const S* __restrict in, std::int64_t n) {
  T* __restrict to = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) to[i] = narrow<T>(in[i]);
}

template <typename S>
void scale_tile(S* __restrict x, S factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

template <typename S>
bool all_finite_tile(const S* __restrict x, std::int64_t n) {
  std::uint32_t bad = 0;
  for (std::int64_t i = 0; i < n; ++i) bad |= formula::is_finite(x[i]) ? 0 : 1;
  return bad == 0;
}

template <typename S, NormKind kKind>
void norm_tile(double* __restrict lanes, const S* __restrict x, double power,
               std::int64_t n) {
  double sums[kLanes];
  for (int j = 0; j < kLanes; ++j) sums[j] = lanes[j];
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j)
      sums[j] = formula::norm_join<kKind>(
          sums[j],
          formula::norm_term<kKind>(static_cast<double>(x[i + j]), power));
  for (int j = 0; j < kLanes; ++j) lanes[j] = sums[j];
  for (int j = 0; i < n; ++i, ++j)
    lanes[j] = formula::norm_join<kKind>(
        lanes[j], formula::norm_term<kKind>(static_cast<double>(x[i]), power));
}

template <typename S>
void adam_tile(S* __restrict w, S* __restrict m, S* __restrict v,
               const S* __restrict g, S scale, std::int64_t n,
               const formula::AdamCoefficients<S>& coefficients) {
  const formula::AdamCoefficients<S> c = coefficients;
  for (std::int64_t i = 0; i < n; ++i)
    formula::adam_element(w[i], m[i], v[i], g[i] * scale, c);
}

template <typename S>
void sgd_tile(S* __restrict w, const S* __restrict g, S scale, std::int64_t n,
              const formula::SgdCoefficients<S>& coefficients) {
  const formula::SgdCoefficients<S> c = coefficients;
  for (std::int64_t i = 0; i < n; ++i)
    formula::sgd_element(w[i], g[i] * scale, c);
}

template <typename S>
void sgd_momentum_tile(S* __restrict w, S* __restrict b, const S* __restrict g,
                       S scale, std::int64_t n,
                       const formula::SgdCoefficients<S>& coefficients) {
  const formula::SgdCoefficients<S> c = coefficients;
  for (std::int64_t i = 0; i < n; ++i)
    formula::sgd_element(w[i], b[i], g[i] * scale, c);
}

std::uint64_t checksum_words(const void* data, std::int64_t words,
                             std::uint64_t index, std::uint64_t seed) {
  const char* bytes = static_cast<const char*>(data);
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < words; ++i) {
    std::uint64_t word;
    __builtin_memcpy(&word, bytes + i * 8, 8);
    sum += formula::checksum_term(word, index + static_cast<std::uint64_t>(i),
                                  seed);
  }
  return sum;
}

template <typename S>
constexpr Tiles<S> make_tiles() {
  return {
      .widen = {widen_tile<S, float>, widen_tile<S, double>,
                widen_tile<S, bfloat16>, widen_tile<S, float16>},
      .add = {add_tile<S, float>, add_tile<S, double>, add_tile<S, bfloat16>,
              add_tile<S, float16>},
      .narrow = {narrow_tile<S, float>, narrow_tile<S, double>,
                 narrow_tile<S, bfloat16>, narrow_tile<S, float16>},
      .norm = {norm_tile<S, NormKind::kTwo>, norm_tile<S, NormKind::kInfinity>,
               norm_tile<S, NormKind::kOne>, norm_tile<S, NormKind::kPower>},
      .scale = scale_tile<S>,
      .all_finite = all_finite_tile<S>,
      .adam = adam_tile<S>,
      .sgd = sgd_tile<S>,
      .sgd_momentum = sgd_momentum_tile<S>,
  };
}

}  // namespace

extern const TileSet DDP_TILES_NAME;
constinit const TileSet DDP_TILES_NAME = {make_tiles<float>(),
                                          make_tiles<double>(), checksum_words};

}  // namespace ddp::cpu
