#include "libddp/base/environment.h"

#include <unistd.h>

#include <charconv>

#include "kernels/core/error.h"

namespace ddp {
namespace {

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return std::string(
      text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
}

}  // namespace

Environment Environment::of_process() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    result.set(std::string(line.substr(0, equals)),
               std::string(line.substr(equals + 1)));
  }
  return result;
}

bool Environment::has(std::string_view name) const {
  return get(name).has_value();
}

std::optional<std::string> Environment::get(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  if (found == values_.end()) return std::nullopt;
  std::string value = trimmed(found->second);
  if (value.empty()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> Environment::get_int(std::string_view name) const {
  const auto text = get(name);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  DDP_EXPECT(error == std::errc() && rest == end, InvalidArgument,
             "environment variable ", name, "=\"", *text,
             "\" is not an integer; correct or unset it");
  return value;
}

void Environment::set(std::string name, std::string value) {
  values_[std::move(name)] = std::move(value);
}

}  // namespace ddp
