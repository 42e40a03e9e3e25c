/// \file
/// Environment: the environment variables, read once into a value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ddp {

/// A copy of environment variables. Tests build one from a recorded list, so
/// nothing below bootstrap ever reads the process environment.
class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string> values)
      : values_(std::move(values)) {}
  /// The variables of this process as they are now.
  static Environment of_process();

  bool has(std::string_view name) const;
  /// The value with surrounding blanks removed; nothing if unset or empty.
  std::optional<std::string> get(std::string_view name) const;
  /// The value as an integer. Throws InvalidArgument with name and text if it
  /// is set but is none.
  std::optional<std::int64_t> get_int(std::string_view name) const;
  void set(std::string name, std::string value);

  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace ddp
