// Compiled with the flags that kernels/CMakeLists.txt gives this file alone.
#define DDP_TILES_NAME kTilesBaseline
#include "kernels/cpu/tiles_body.h"
