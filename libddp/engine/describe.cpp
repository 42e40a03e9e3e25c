// The table of what is in force.
#include <iomanip>
#include <sstream>

#include "libddp/engine/impl.h"

namespace ddp {
namespace {

std::string mebibytes(double bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << bytes / (1 << 20) << " MiB";
  return out.str();
}

std::string optimizer_text(const OptimizerConfig& config) {
  constexpr const char* kNames[] = {"AdamW", "Adam", "SGD"};
  return concat(kNames[config.index()], ", lr ",
                std::visit([](const auto& c) { return c.lr; }, config));
}

}  // namespace

std::string DataParallel::Impl::describe() const {
  std::int64_t trained = 0, frozen = 0;
  double weight_bytes = 0, gradient_bytes = 0;
  for (std::size_t a = 0; a < plan.arenas().size(); ++a) {
    const ArenaPlan& arena = plan.arenas()[a];
    for (const int p : arena.parameters)
      (arena.trainable ? trained : frozen) += numel(plan.parameters()[p]);
    weight_bytes += memory[a].weights.bytes();
    gradient_bytes += memory[a].gradients.bytes();
  }
  std::ostringstream out;
  const auto line = [&](const char* what, const std::string& value) {
    out << "\n  " << std::left << std::setw(12) << what << value;
  };
  out << "DataParallel";
  line("world",
       concat(world.size(), " ranks on ", world.node_count(), " nodes, ",
              name(world.device()), ", backend ", communicator->backend()));
  line("parameters", concat(trained, " trained, ", frozen, " frozen, in ",
                            plan.launch_order().size(), " buckets"));
  line("stage", options.zero_stage == 0 ? "0: everything on every rank"
                                        : "1: optimizer state in slices");
  line("precision",
       concat(options.precision.name, ", gradients ",
              name(options.precision.gradient), ", sums over ranks in place"));
  line("optimizer", optimizer_text(options.optimizer));
  line("clip", options.clip_norm > 0 ? concat("norm ", options.clip_norm)
                                     : std::string("none"));
  line("per rank",
       concat("weights ", mebibytes(weight_bytes), ", gradients ",
              mebibytes(gradient_bytes), ", optimizer state ",
              mebibytes(static_cast<double>(optimizer->state_bytes()))));
  return out.str();
}

}  // namespace ddp
