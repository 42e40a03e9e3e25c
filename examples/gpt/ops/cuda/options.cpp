#include <cstdlib>
#include <string>

#include "examples/gpt/ops/cuda/cuda_ops.h"

namespace gpt {
namespace {

void read_flag(const char* name, bool& flag) {
  const char* const text = std::getenv(name);
  if (!text) return;
  const std::string value = text;
  DDP_EXPECT(value == "0" || value == "1", InvalidArgument, name, " is '",
             value, "'; set it to 0 or 1, or unset it");
  flag = value == "1";
}

}  // namespace

CudaOpsOptions CudaOpsOptions::from_environment() {
  CudaOpsOptions options;
  if (const char* const text = std::getenv("GPT_ATTENTION")) {
    const std::string value = text;
    DDP_EXPECT(value == "best" || value == "flash" || value == "simple",
               InvalidArgument, "GPT_ATTENTION is '", value,
               "'; set it to best, flash or simple, or unset it");
    if (value == "flash") options.attention = AttentionKind::kFlash;
    if (value == "simple") options.attention = AttentionKind::kSimple;
  }
  read_flag("GPT_DETERMINISTIC", options.deterministic_attention);
  read_flag("GPT_TUNE", options.tune_products);
  read_flag("GPT_FUSE_GELU", options.fuse_gelu);
  read_flag("GPT_FUSE_BIAS_GRADIENT", options.fuse_bias_gradient);
  return options;
}

}  // namespace gpt
