#include "kernels/cpu/tiles.h"

namespace ddp::cpu {

extern const TileSet kTilesBaseline;
#if defined(DDP_TILES_X86)
extern const TileSet kTilesAvx2;
extern const TileSet kTilesAvx512;
#endif

bool has(Isa isa) noexcept {
#if defined(DDP_TILES_X86)
  switch (isa) {
    case Isa::kBaseline: return true;
    case Isa::kAvx2: return __builtin_cpu_supports("avx2");
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
  }
  return false;
#else
  return isa == Isa::kBaseline;
#endif
}

const TileSet& tile_set([[maybe_unused]] Isa isa) noexcept {
#if defined(DDP_TILES_X86)
  if (isa == Isa::kAvx512) return kTilesAvx512;
  if (isa == Isa::kAvx2) return kTilesAvx2;
#endif
  return kTilesBaseline;
}

const TileSet& tile_set() noexcept {
  static const TileSet& widest = tile_set(has(Isa::kAvx512) ? Isa::kAvx512
                                          : has(Isa::kAvx2) ? Isa::kAvx2
                                                            : Isa::kBaseline);
  return widest;
}

}  // namespace ddp::cpu
