/// \file
/// The collectives as messages: what is sent to whom, in which pieces.
///
/// Every function runs one operation from begin to end on the calling thread.
/// Ranks exchange slices directly, each with each, in pieces of about a MiB
/// that stay in cache while they are summed:
///
///     piece k of an all_reduce over three ranks, as rank 1 sees it
///     | slice 0      | slice 1 (own)              | slice 2      |
///       -> rank 0      <- ranks 0, 2, then summed   -> rank 2
///       <- rank 0         in rank order, sent back  <- rank 2
///
/// That moves 2 (W-1)/W of the bytes, as a ring does, in two steps instead of
/// 2 (W-1); the sum of an element does not depend on where pieces begin. The
/// messages of piece k+1 travel while piece k is being summed.
#pragma once

#include "libddp/backends/host/transfers.h"
#include "libddp/comm/operation.h"

namespace ddp::host {

/// Bytes of one piece, over all slices.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
/// Least bytes of a message, where there is that much to send.
inline constexpr std::size_t kLeastMessageBytes = std::size_t{32} << 10;

/// What a message with this tag belongs to: "all_reduce(sum) of float32, #5
/// modulo 32".
std::string describe_tag(int tag);

void all_reduce(const Bounds& bounds, const Operation& operation,
                TensorView tensor);
void reduce_scatter(const Bounds& bounds, const Operation& operation,
                    TensorView input, TensorView output);
void all_gather(const Bounds& bounds, const Operation& operation,
                TensorView input, TensorView output);
void broadcast(const Bounds& bounds, const Operation& operation,
               TensorView tensor);
void all_to_all(const Bounds& bounds, const Operation& operation,
                TensorView input, TensorView output);
void send(const Bounds& bounds, const Operation& operation, TensorView tensor);
void receive(const Bounds& bounds, const Operation& operation,
             TensorView tensor);
void barrier(const Bounds& bounds, const Operation& operation);

}  // namespace ddp::host
