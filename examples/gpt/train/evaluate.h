/// \file
/// evaluate: the loss on held-out text.
#pragma once

#include "examples/gpt/model/model.h"
#include "examples/gpt/train/uploader.h"
#include "libddp/bootstrap/world.h"
#include "libddp/data/token_dataset.h"
#include "libddp/engine/data_parallel.h"

namespace gpt {

/// Mean cross entropy, in nats a token, over the windows of `data`, or over
/// the first `max_batches` x `batch` x ranks of them if that is not 0. Ranks
/// share the windows; each counts once, whatever their number. Collective.
/// Waits for the device.
double evaluate(Gpt& model, Uploader& uploader, const ParameterAccess& weights,
                const ddp::TokenDataset& data, std::int64_t batch,
                std::int64_t max_batches, const ddp::World& world,
                ddp::DataParallel& engine);

}  // namespace gpt
