/// \file
/// Log lines with time, level and rank, written to standard error.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ddp {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Writes one line. Thread-safe. Lines below the level of set_log_level()
/// cost one comparison.
void log(LogLevel level, std::string_view text);

/// Least level that is written; kInfo at start, or what LIBDDP_LOG says
/// (debug, info, warning, error).
void set_log_level(LogLevel level);

/// Prefix of the process's lines, such as "rank 3 on node7".
void set_log_prefix(std::string prefix);

}  // namespace ddp
