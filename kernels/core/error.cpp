#include "kernels/core/error.h"

namespace ddp {

void raise(ErrorKind kind, const std::string& text) {
  switch (kind) {
    case ErrorKind::kInvalidArgument: throw InvalidArgument(text);
    case ErrorKind::kTimeout: throw Timeout(text);
    case ErrorKind::kPeerFailure: throw PeerFailure(text);
    case ErrorKind::kConnectionLost: throw ConnectionLost(text);
    case ErrorKind::kCorruptData: throw CorruptData(text);
    case ErrorKind::kUnavailable: throw Unavailable(text);
    case ErrorKind::kDeviceError: throw DeviceError(text);
    case ErrorKind::kNonFinite: throw NonFinite(text);
    case ErrorKind::kError: break;
  }
  throw Error(text);
}

ErrorKind kind_of(const std::exception& error) noexcept {
  const auto* ours = dynamic_cast<const Error*>(&error);
  return ours ? ours->kind() : ErrorKind::kError;
}

std::string_view name(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kInvalidArgument: return "InvalidArgument";
    case ErrorKind::kTimeout: return "Timeout";
    case ErrorKind::kPeerFailure: return "PeerFailure";
    case ErrorKind::kConnectionLost: return "ConnectionLost";
    case ErrorKind::kCorruptData: return "CorruptData";
    case ErrorKind::kUnavailable: return "Unavailable";
    case ErrorKind::kDeviceError: return "DeviceError";
    case ErrorKind::kNonFinite: return "NonFinite";
    case ErrorKind::kError: break;
  }
  return "Error";
}

}  // namespace ddp
