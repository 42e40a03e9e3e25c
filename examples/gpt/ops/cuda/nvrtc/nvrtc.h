/// \file
/// Stands in for NVIDIA's header where a toolkit lacks NVRTC: the names that
/// cudnn-frontend mentions for engines that attention does not use. It loads
/// the library itself, if ever, so nothing is declared that needs linking.
#pragma once

typedef struct _nvrtcProgram* nvrtcProgram;

typedef enum {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_INTERNAL_ERROR = 11,
} nvrtcResult;
