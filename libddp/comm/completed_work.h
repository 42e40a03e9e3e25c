/// \file
/// CompletedWork: a Work of a backend that finishes inside the call.
#pragma once

#include "libddp/comm/work.h"

namespace ddp {

/// Done before the caller holds it; remembers when it ran.
class CompletedWork final : public Work::State {
 public:
  static Work since(std::chrono::steady_clock::time_point started) {
    return Work(std::make_shared<CompletedWork>(
        Work::Span{started, std::chrono::steady_clock::now()}));
  }
  explicit CompletedWork(Work::Span span) : span_(span) {}

  void wait(Deadline) override {}
  void block(StreamView) override {}
  bool is_complete() const noexcept override { return true; }
  std::optional<Work::Span> span() const noexcept override { return span_; }

 private:
  Work::Span span_;
};

}  // namespace ddp
