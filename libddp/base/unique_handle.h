/// \file
/// UniqueHandle: the one owner of a handle that a C library gave out.
#pragma once

#include <utility>

namespace ddp {

/// Closes the handle with `Close` when it goes. Movable, not copyable; what
/// `Close` returns is dropped, since a destructor cannot report it.
///
///     using UniqueFd = UniqueHandle<int, ::close, -1>;
template <typename T, auto Close, T kNone = T{}>
class UniqueHandle {
 public:
  UniqueHandle() = default;
  explicit UniqueHandle(T handle) noexcept : handle_(handle) {}
  ~UniqueHandle() { reset(); }
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(other.release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }

  T get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != kNone; }
  /// Gives the handle to the caller, who closes it.
  [[nodiscard]] T release() noexcept { return std::exchange(handle_, kNone); }
  /// Closes what is held and holds `handle` instead.
  void reset(T handle = kNone) noexcept {
    const T old = std::exchange(handle_, handle);
    if (old != kNone) static_cast<void>(Close(old));
  }

 private:
  T handle_ = kNone;
};

}  // namespace ddp
