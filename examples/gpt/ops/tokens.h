/// \file
/// check_tokens: refuses tokens that a table has no row for.
#pragma once

#include <cstdint>
#include <limits>

namespace gpt {

/// Targets below 0 are ignored, so any of them will do.
inline constexpr std::int32_t kAnyTarget =
    std::numeric_limits<std::int32_t>::min();

/// Throws InvalidArgument naming the first of `count` values (`what`: "token"
/// or "target") that is below `least`, or `vocabulary` or more.
void check_tokens(const std::int32_t* tokens, std::int64_t count,
                  std::int32_t least, std::int64_t vocabulary,
                  const char* what);

}  // namespace gpt
