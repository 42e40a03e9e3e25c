/// \file
/// Uploader: moves tokens from the host to where the model reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/gpt/model/model.h"
#include "libddp/device/buffer.h"
#include "libddp/device/event.h"

namespace gpt {

/// Copies through page-locked memory in order of the model's stream, so the
/// host goes on at once; it waits only for the copy made kSlots uploads ago.
class Uploader {
 public:
  /// `model` must outlive the uploader.
  Uploader(Gpt& model, std::int64_t max_rows);

  /// The next micro-batch: `rows` tokens and as many targets. Throws
  /// InvalidArgument for a token outside the vocabulary.
  void upload(const std::int32_t* tokens, const std::int32_t* targets,
              std::int64_t rows);

 private:
  static constexpr std::size_t kSlots = 4;
  struct Slot {
    ddp::Buffer memory;
    ddp::Event copied;
  };
  Gpt& model_;
  std::int64_t max_rows_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
};

}  // namespace gpt
