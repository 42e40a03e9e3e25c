/// \file
/// The addresses of this machine.
#pragma once

#include <string>
#include <vector>

namespace ddp {

/// Numeric addresses at which other ranks may reach this machine, loopback
/// last; link-local ones are left out.
std::vector<std::string> local_hosts();

}  // namespace ddp
