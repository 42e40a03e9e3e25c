/// \file
/// Counters in stores: decimal text.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/core/error.h"

namespace ddp {

/// The counter `text` (0 if absent) plus `amount`. Throws InvalidArgument
/// that names the key when the text is no number.
inline std::int64_t add_to_counter(std::string_view key,
                                   const std::optional<std::string>& text,
                                   std::int64_t amount) {
  if (!text) return amount;
  std::int64_t before = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, before);
  DDP_EXPECT(error == std::errc() && rest == end, InvalidArgument,
             "the store's key \"", key, "\" holds a value that is no counter");
  return before + amount;
}

}  // namespace ddp
