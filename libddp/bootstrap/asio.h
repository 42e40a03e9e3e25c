/// \file
/// The parts of Asio that are used, the same in every source. Private.
///
/// Asio chooses its own allocation functions by what the standard library has
/// said of itself before Asio is included. Sources that differ in that would
/// free with one function what another one allocated, so all include this
/// file and no header of Asio.
#pragma once

#include <cstdlib>

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ip/v6_only.hpp>
#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
