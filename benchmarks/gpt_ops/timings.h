/// \file
/// Times of the CUDA operations at GPT-2 124 M's shapes.
#pragma once

#include "libddp/device/stream.h"

namespace bench {

struct TimingOptions {
  int batch = 32;
  int sequence = 1024;
  int layers = 12;
  int heads = 12;
  int head_size = 64;
  int vocabulary = 50257;
  int padded_vocabulary = 50304;
  bool json = false;
};

void run_timings(ddp::StreamView stream, const TimingOptions& options);

}  // namespace bench
