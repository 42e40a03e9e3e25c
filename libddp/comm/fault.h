/// \file
/// Fault: the first thing that went wrong with a communicator.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "kernels/core/error.h"

namespace ddp {

/// Set once, then thrown by every call. All members are thread-safe.
class Fault {
 public:
  /// Keeps the first fault; returns whether this was it.
  bool set(ErrorKind kind, const std::string& text) noexcept {
    const std::lock_guard lock(mutex_);
    if (is_set_.load(std::memory_order_relaxed)) return false;
    kind_ = kind;
    try {
      text_ = text;
    } catch (...) {  // no memory for the text: the kind alone must do
    }
    is_set_.store(true, std::memory_order_release);
    return true;
  }

  bool is_set() const noexcept {
    return is_set_.load(std::memory_order_acquire);
  }

  /// Throws the fault if there is one.
  void check() const {
    if (is_set()) [[unlikely]]
      throw_it();
  }

  /// REQUIRES: is_set().
  [[noreturn]] void throw_it() const {
    // Neither changes once is_set_ is true.
    raise(kind_, text_);
  }
  ErrorKind kind() const noexcept { return kind_; }
  const std::string& text() const noexcept { return text_; }

 private:
  std::mutex mutex_;
  std::atomic<bool> is_set_ = false;
  ErrorKind kind_ = ErrorKind::kError;
  std::string text_;
};

}  // namespace ddp
