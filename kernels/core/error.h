/// \file
/// The error family of libddp and the checks that throw it.
///
/// An error says who, what, the two values that disagree, and what to do
/// next. A subtype exists only where a caller would act differently.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ddp {

/// What went wrong, in a form that can be sent to another rank and thrown
/// there again with raise().
enum class ErrorKind : int {
  kError = 0,
  kInvalidArgument,
  kTimeout,
  kPeerFailure,
  kConnectionLost,
  kCorruptData,
  kUnavailable,
  kDeviceError,
  kNonFinite,
};

/// Base of all errors that libddp throws.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text, ErrorKind kind = ErrorKind::kError)
      : std::runtime_error(text), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

#define DDP_DEFINE_ERROR(Name)               \
  class Name : public Error {                \
   public:                                   \
    explicit Name(const std::string& text)   \
        : Error(text, ErrorKind::k##Name) {} \
  }

/// The call itself is wrong: correct it and call again.
DDP_DEFINE_ERROR(InvalidArgument);
/// A deadline passed: look at the peers that the text names.
DDP_DEFINE_ERROR(Timeout);
/// Another rank failed, died or left: rebuild the world.
DDP_DEFINE_ERROR(PeerFailure);
/// A connection could not be made or broke.
DDP_DEFINE_ERROR(ConnectionLost);
/// A file or message is not what it claims to be: use another copy.
DDP_DEFINE_ERROR(CorruptData);
/// The feature is not in this build or on this machine; the text names the
/// option or package that brings it.
DDP_DEFINE_ERROR(Unavailable);
/// CUDA, NCCL or the system refused a call.
DDP_DEFINE_ERROR(DeviceError);
/// A gradient, loss or norm was infinite or NaN and the policy says raise.
DDP_DEFINE_ERROR(NonFinite);
#undef DDP_DEFINE_ERROR

/// Throws the subtype that belongs to `kind`.
[[noreturn]] void raise(ErrorKind kind, const std::string& text);

/// The kind of any exception; kError for those that are not ddp::Error.
ErrorKind kind_of(const std::exception& error) noexcept;

/// The class name of a kind, such as "InvalidArgument".
std::string_view name(ErrorKind kind) noexcept;

/// Joins the text of its arguments as operator<< writes them.
template <typename... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return std::move(out).str();
}

}  // namespace ddp

/// Throws `Type` with the text of the remaining arguments, and the failed
/// expression, unless `condition` holds. For checks at the public edge.
#define DDP_EXPECT(condition, Type, ...)             \
  do {                                               \
    if (!(condition)) [[unlikely]]                   \
      throw ::ddp::Type(::ddp::concat(__VA_ARGS__)); \
  } while (false)
