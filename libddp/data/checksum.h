/// \file
/// Checksum: XXH3 (64 bits) over bytes that come in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ddp {

/// Finds accidental damage at the speed of memory; not a defence against an
/// attacker.
class Checksum {
 public:
  Checksum();
  ~Checksum();

  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

  /// Of all bytes at once.
  static std::uint64_t of(std::span<const std::byte> bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Sixteen lower-case hexadecimal digits, as xxhsum prints them.
std::string to_hex(std::uint64_t value);

}  // namespace ddp
