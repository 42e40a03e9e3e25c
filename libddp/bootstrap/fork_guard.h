/// \file
/// What fork() means for control connections: the child must neither use them
/// nor keep them open.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace ddp {

/// A child made by fork() from now on closes its copy of `descriptor` at
/// once; otherwise the others would not notice the parent's end.
void close_in_forked_child(int descriptor);
/// To be called before `descriptor` is closed here.
void keep_in_forked_child(int descriptor) noexcept;

/// Remembers the process that made it.
class ProcessGuard {
 public:
  ProcessGuard() noexcept;
  /// False in a forked child.
  bool is_in_maker() const noexcept;
  /// Throws InvalidArgument in a forked child; `what` was to be done.
  void check(std::string_view what) const;

 private:
  pid_t pid_;
};

}  // namespace ddp
