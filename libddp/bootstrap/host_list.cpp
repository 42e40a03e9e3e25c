#include "libddp/bootstrap/host_list.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "kernels/core/error.h"

namespace ddp {
namespace {

constexpr std::size_t kMaxHosts = std::size_t{1} << 20;

/// Splits at commas outside brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(text.substr(start, i - start));
      start = i + 1;
    } else if (text[i] == '[') {
      ++depth;
    } else if (text[i] == ']') {
      --depth;
    }
  }
  return parts;
}

std::optional<std::uint64_t> number(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || error != std::errc() || rest != end)
    return std::nullopt;
  return value;
}

class HostListParser {
 public:
  explicit HostListParser(std::string_view list) : list_(list) {}

  std::vector<std::string> parse() {
    for (const auto name : split(list_)) {
      if (name.empty()) fail("an empty name");
      auto expanded = expand(name);
      check_count(hosts_.size() + expanded.size());
      hosts_.insert(hosts_.end(), expanded.begin(), expanded.end());
    }
    return std::move(hosts_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw InvalidArgument(
        concat("host list \"", list_, "\" has ", what,
               "; expected names such as n[1-3,7] or rack[0-1]node[01-02]"));
  }

  void check_count(std::size_t count) const {
    if (count > kMaxHosts) fail(concat("more than ", kMaxHosts, " names"));
  }

  /// One name with any number of brackets.
  std::vector<std::string> expand(std::string_view name) const {
    std::vector<std::string> made{""};
    while (!name.empty()) {
      const auto open = name.find('[');
      const auto literal = name.substr(0, open);
      if (literal.find(']') != std::string_view::npos) fail("a stray \"]\"");
      for (auto& host : made) host += literal;
      if (open == std::string_view::npos) break;
      const auto close = name.find(']', open);
      if (close == std::string_view::npos) fail("an unclosed \"[\"");
      made = product(made, choices(name.substr(open + 1, close - open - 1)));
      name.remove_prefix(close + 1);
    }
    return made;
  }

  std::vector<std::string> product(
      const std::vector<std::string>& heads,
      const std::vector<std::string>& tails) const {
    check_count(heads.size() * tails.size());
    std::vector<std::string> result;
    result.reserve(heads.size() * tails.size());
    for (const auto& head : heads)
      for (const auto& tail : tails) result.push_back(head + tail);
    return result;
  }

  /// "1-3,07" inside brackets.
  std::vector<std::string> choices(std::string_view text) const {
    std::vector<std::string> result;
    for (const auto range : split(text)) {
      const auto dash = range.find('-');
      const auto first_text = range.substr(0, dash);
      const auto last_text =
          dash == std::string_view::npos ? first_text : range.substr(dash + 1);
      const auto first = number(first_text);
      const auto last = number(last_text);
      if (!first || !last || *last < *first)
        fail(concat("the bad range \"", range, "\""));
      check_count(result.size() + (*last - *first) + 1);
      for (auto value = *first; value <= *last; ++value)
        result.push_back(padded(value, first_text.size()));
    }
    return result;
  }

  static std::string padded(std::uint64_t value, std::size_t width) {
    std::string digits = std::to_string(value);
    if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
    return digits;
  }

  std::string_view list_;
  std::vector<std::string> hosts_;
};

}  // namespace

std::vector<std::string> expand_host_list(std::string_view list) {
  return HostListParser(list).parse();
}

std::vector<int> expand_tasks_per_node(std::string_view text) {
  std::vector<int> counts;
  for (auto part : split(text)) {
    std::optional<std::uint64_t> repeat = 1;
    const auto open = part.find("(x");
    const bool closed = part.ends_with(')');
    if (open != std::string_view::npos && closed) {
      repeat = number(part.substr(open + 2, part.size() - open - 3));
      part = part.substr(0, open);
    }
    const auto count = number(part);
    DDP_EXPECT(count && repeat && *count <= kMaxHosts &&
                   counts.size() + *repeat <= kMaxHosts,
               InvalidArgument, "tasks per node \"", text,
               "\" cannot be read; expected a list such as 2(x2),1");
    counts.insert(counts.end(), *repeat, static_cast<int>(*count));
  }
  return counts;
}

std::vector<int> split_task_ids(std::string_view text) {
  std::vector<int> ids;
  for (const auto part : split(text)) {
    const auto id = number(part);
    DDP_EXPECT(id && *id <= kMaxHosts, InvalidArgument, "task ids \"", text,
               "\" cannot be read; expected a list such as 0,2,3");
    ids.push_back(static_cast<int>(*id));
  }
  return ids;
}

}  // namespace ddp
