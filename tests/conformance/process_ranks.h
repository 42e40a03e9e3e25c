/// \file
/// Ranks of the suite as processes that a launcher started.
#pragma once

#include "tests/conformance/ranks.h"

namespace ddp::conformance {

/// Joins the world, runs all tests and returns the exit code. Errors of one
/// rank become errors of the others. `renew` changes the options for each
/// further world, where two cannot meet in one place.
int run_tests_in_world(
    int argc, char** argv, const InitOptions& options,
    const std::function<void(InitOptions&)>& renew = [](InitOptions&) {});

}  // namespace ddp::conformance
