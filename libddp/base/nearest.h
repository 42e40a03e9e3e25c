/// \file
/// The known name that a mistyped one is nearest to, for error texts.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ddp {

/// The candidate with the least edit distance to `word` (Levenshtein 1966);
/// the first of equals; empty if there are no candidates.
std::string nearest_name(std::string_view word,
                         std::span<const std::string> candidates);

}  // namespace ddp
