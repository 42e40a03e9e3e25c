/// \file
/// The backend of a world of one: every operation is a copy, or nothing.
#pragma once

#include "libddp/backends/backend.h"

namespace ddp {

/// Throws InvalidArgument for a world of more than one rank.
std::unique_ptr<Communicator> make_solo(const World& world, Traffic traffic);

}  // namespace ddp
