#include "libddp/backends/nccl/nccl_call.h"

namespace ddp::nccl {

int loaded_version() noexcept {
  static const int version = [] {
    int code = 0;
    return ncclGetVersion(&code) == ncclSuccess ? code : 0;
  }();
  return version;
}

std::string version_text(int code) {
  // Up to 2.8 codes were 2xyy, since then 2xxyy.
  const int base = code < 10000 ? 1000 : 10000;
  return concat(code / base, ".", code % base / 100, ".", code % 100);
}

std::string error_text(ncclResult_t result, ncclComm_t comm) {
  std::string text = ncclGetErrorString(result);
  const char* last = ncclGetLastError(comm);
  if (last != nullptr && *last != '\0') text += concat(" (", last, ")");
  if (result == ncclUnhandledCudaError || result == ncclSystemError)
    text += "; run with NCCL_DEBUG=WARN to see more";
  return text;
}

}  // namespace ddp::nccl
