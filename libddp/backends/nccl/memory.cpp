#include "libddp/backends/nccl/memory.h"

#include <cuda_runtime_api.h>

#include "libddp/backends/nccl/nccl_call.h"

namespace ddp::nccl {

Handle enroll([[maybe_unused]] ncclComm_t comm, [[maybe_unused]] void* data,
              [[maybe_unused]] std::size_t bytes, Registration registration) {
  Handle handle;
  if (registration == Registration::kNone || bytes == 0) return handle;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  if (registration == Registration::kWindow &&
      loaded_version() >= NCCL_VERSION(2, 27, 0)) {
    // Success with a null window means that this system has none.
    if (ncclCommWindowRegister(comm, data, bytes, &handle.window,
                               NCCL_WIN_COLL_SYMMETRIC) == ncclSuccess &&
        handle.window != nullptr) {
      return handle;
    }
    handle.window = nullptr;
  }
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  if (loaded_version() >= NCCL_VERSION(2, 19, 0) &&
      ncclCommRegister(comm, data, bytes, &handle.buffer) != ncclSuccess) {
    handle.buffer = nullptr;
  }
#endif
  return handle;
}

void withdraw([[maybe_unused]] ncclComm_t comm,
              [[maybe_unused]] const Handle& handle) noexcept {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  if (handle.window != nullptr)
    (void)ncclCommWindowDeregister(comm, handle.window);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  if (handle.buffer != nullptr) (void)ncclCommDeregister(comm, handle.buffer);
#endif
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)

void* allocate(std::size_t bytes) noexcept {
  void* data = nullptr;
  if (loaded_version() < NCCL_VERSION(2, 19, 0)) return nullptr;
  // Windows want sizes and addresses of whole pages.
  constexpr std::size_t kPage = 4096;
  const std::size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  if (ncclMemAlloc(&data, rounded) == ncclSuccess) return data;
  (void)cudaGetLastError();
  return nullptr;
}

void free(void* data) noexcept { (void)ncclMemFree(data); }

#else

void* allocate(std::size_t) noexcept { return nullptr; }
void free(void*) noexcept {}

#endif

}  // namespace ddp::nccl
