#include "examples/gpt/train/evaluate.h"

#include <algorithm>
#include <array>
#include <vector>

#include "libddp/device/stream.h"

namespace gpt {

double evaluate(Gpt& model, Uploader& uploader, const ParameterAccess& weights,
                const ddp::TokenDataset& data, std::int64_t batch,
                std::int64_t max_batches, const ddp::World& world,
                ddp::DataParallel& engine) {
  const std::int64_t sequence = data.sequence();
  const std::int64_t rows = batch * sequence;
  const std::int64_t limit = max_batches * batch * world.size();
  const std::int64_t windows =
      limit > 0 ? std::min(limit, data.size()) : data.size();
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows));
  std::vector<std::int32_t> targets(static_cast<std::size_t>(rows));
  std::int64_t counted = 0;
  for (std::int64_t window = world.rank(); window < windows;) {
    std::fill(tokens.begin(), tokens.end(), 0);
    std::fill(targets.begin(), targets.end(), -1);
    const bool first = counted == 0;
    for (std::int64_t i = 0; i < batch && window < windows;
         ++i, window += world.size(), counted += sequence)
      data.read(window, tokens.data() + i * sequence,
                targets.data() + i * sequence);
    uploader.upload(tokens.data(), targets.data(), rows);
    model.forward(weights, {batch, sequence},
                  {.loss_count = 1, .accumulate_loss = !first});
  }
  float sum = 0;
  if (counted > 0) {
    ddp::copy_bytes(&sum, model.loss(), sizeof sum, model.stream());
    ddp::synchronize(model.stream());
  }
  const std::array<double, 2> mine{sum, static_cast<double>(counted)};
  const std::vector<double> mean = engine.average(mine);
  return mean[0] / mean[1];
}

}  // namespace gpt
