#include "libddp/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace ddp {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: break;
  }
  return spdlog::level::err;
}

spdlog::level::level_enum initial_level() {
  const char* const text = std::getenv("LIBDDP_LOG");
  const std::string_view wanted = text == nullptr ? "" : text;
  if (wanted == "debug") return spdlog::level::debug;
  if (wanted == "warning") return spdlog::level::warn;
  if (wanted == "error") return spdlog::level::err;
  return spdlog::level::info;
}

struct Log {
  std::shared_ptr<spdlog::logger> logger;
  std::mutex mutex;
  std::string prefix;
};

// Never destroyed: threads and exit handlers may log until the very end.
Log& the_log() {
  static Log& log = *[] {
    auto* made = new Log;
    made->logger = std::make_shared<spdlog::logger>(
        "libddp", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->logger->set_pattern("%H:%M:%S.%e %l %v");
    made->logger->set_level(initial_level());
    made->logger->flush_on(spdlog::level::debug);
    return made;
  }();
  return log;
}

}  // namespace

void log(LogLevel level, std::string_view text) {
  Log& log = the_log();
  const auto spd_level = level_of(level);
  if (!log.logger->should_log(spd_level)) return;
  std::string prefix;
  {
    std::lock_guard lock(log.mutex);
    prefix = log.prefix;
  }
  if (prefix.empty()) {
    log.logger->log(spd_level, "{}", text);
  } else {
    log.logger->log(spd_level, "[{}] {}", prefix, text);
  }
}

void set_log_level(LogLevel level) {
  the_log().logger->set_level(level_of(level));
}

void set_log_prefix(std::string prefix) {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  log.prefix = std::move(prefix);
}

}  // namespace ddp
