#include "libddp/telemetry/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "kernels/core/error.h"

namespace ddp {
namespace {

constexpr char kDropped[] = "libddp_dropped_series";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

void check_name(std::string_view name, bool allows_colon) {
  const auto fits = [&](char c) {
    return is_letter(c) || is_digit(c) || (allows_colon && c == ':');
  };
  DDP_EXPECT(!name.empty() && !is_digit(name[0]) &&
                 std::all_of(name.begin(), name.end(), fits),
             InvalidArgument, "metrics: \"", name,
             "\" is no name; use letters, digits and _, a digit not first");
}

// Help texts leave quotes alone, label values do not.
std::string escape(std::string_view text, bool is_label) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
      continue;
    }
    if (c == '\\' || (is_label && c == '"')) result += '\\';
    result += c;
  }
  return result;
}

std::string text_of(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    check_name(name, false);
    text += concat(text.empty() ? "{" : ",", name, "=\"", escape(value, true),
                   "\"");
  }
  return text.empty() ? text : text + "}";
}

std::string text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char buffer[32];  // the shortest text that reads back as the same double
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

void write_head(std::string& out, const std::string& name,
                const std::string& help, std::string_view type) {
  out += concat("# HELP ", name, " ", escape(help, false), "\n# TYPE ", name,
                " ", type, "\n");
}

}  // namespace

Counter Metrics::counter(const std::string& name, const std::string& help,
                         const Labels& labels) {
  return Counter(find(name, help, labels, "counter"));
}

Gauge Metrics::gauge(const std::string& name, const std::string& help,
                     const Labels& labels) {
  return Gauge(find(name, help, labels, "gauge"));
}

std::atomic<double>& Metrics::find(const std::string& name,
                                   const std::string& help,
                                   const Labels& labels,
                                   std::string_view type) {
  check_name(name, true);
  const std::string text = text_of(labels);
  const std::lock_guard lock(mutex_);
  const auto family = families_.find(name);
  if (family != families_.end()) {
    DDP_EXPECT(family->second.type == type, InvalidArgument, "metrics: \"",
               name, "\" is a ", family->second.type, ", not a ", type);
    const auto found = family->second.series.find(text);
    if (found != family->second.series.end()) return found->second;
  }
  if (series_ == most_series_) {
    ++dropped_;
    return overflow_;
  }
  ++series_;
  Family& owner =
      families_.try_emplace(name, Family{help, type, {}}).first->second;
  return owner.series[text];
}

std::string Metrics::prometheus() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    write_head(out, name, family.help, family.type);
    for (const auto& [labels, cell] : family.series)
      out += concat(name, labels, " ", text_of(cell.load()), "\n");
  }
  if (dropped_ == 0) return out;
  write_head(out, kDropped, "Look-ups beyond the bound on series.", "counter");
  return out + concat(kDropped, " ", dropped_, "\n");
}

}  // namespace ddp
