// Compiled with the flags that kernels/CMakeLists.txt gives this file alone.
#define DDP_TILES_NAME kTilesAvx512
#include "kernels/cpu/tiles_body.h"
