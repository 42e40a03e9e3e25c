/// \file
/// The version of the library.
#pragma once

namespace ddp {
/// Such as "0.1.0".
const char* version() noexcept;
}  // namespace ddp
