// What steps found out: reports, warnings, and errors that all ranks raise
// after the same step.
#include <algorithm>
#include <cmath>

#include "libddp/base/log.h"
#include "libddp/engine/impl.h"

namespace ddp {
namespace {

std::string progress_key(int rank) {
  return concat("libddp/ended-after/", rank);
}

}  // namespace

void DataParallel::Impl::collect(bool wait) {
  for (const Mailbox::Letter& letter : mailbox.collect(wait)) {
    last_all_joined = letter.control.all_joined != 0;
    if (!last_all_joined) reports.push_back(report(letter));
    unjudged.push_back(letter);
  }
}

StepReport DataParallel::Impl::report(const Mailbox::Letter& letter) const {
  const StepControl& c = letter.control;
  StepReport report;
  report.step = letter.step;
  report.applied = c.apply != 0;
  report.loss = c.loss;
  report.norm = c.norm;
  report.num_items = c.num_items;
  report.lr = letter.lr;
  report.skipped_steps = c.skipped;
  report.stop = c.stop != 0;
  report.exposed_ms = letter.exposed_ms;
  return report;
}

/// On a GPU a letter arrives some time after its step, earlier on one rank
/// than on another. It is acted on a fixed number of steps later, when it has
/// certainly arrived, so that all ranks act between the same two steps.
void DataParallel::Impl::judge(bool all) {
  const std::uint32_t lag =
      world.device().is_cpu()
          ? 0
          : static_cast<std::uint32_t>(options.max_steps_in_flight);
  while (!unjudged.empty() && (all || unjudged.front().step + lag < steps)) {
    const Mailbox::Letter letter = unjudged.front();
    unjudged.pop_front();
    judge(letter);
  }
}

void DataParallel::Impl::judge(const Mailbox::Letter& letter) {
  const StepControl& c = letter.control;
  if (c.stop) stop_seen = true;
  if (c.operations_rank >= 0) raise_operations_differ(c);
  if (c.replica_rank >= 0)
    raise(ErrorKind::kCorruptData,
          concat("step ", letter.step, ": the weights of ",
                 world.describe(c.replica_rank),
                 " differ from those of rank 0; they drifted apart since the "
                 "last check: restart from a checkpoint, and look at that "
                 "machine's memory and at code that writes weights on some "
                 "ranks only"));
  if (!c.apply && !c.all_joined) judge_non_finite(letter);
}

void DataParallel::Impl::judge_non_finite(const Mailbox::Letter& letter) {
  const StepControl& c = letter.control;
  const int owner =
      c.non_finite_rank >= 0 ? optimizer->owner_at(c.first_non_finite) : -1;
  const std::string what =
      owner >= 0 ? concat("the gradient of ", to_text(plan.parameters()[owner]),
                          " is infinite or NaN, seen by ",
                          world.describe(c.non_finite_rank))
      : c.loss_rank >= 0 ? concat("the loss is infinite or NaN on ",
                                  world.describe(c.loss_rank))
                         : concat("the norm of the gradient is ", c.norm);
  const std::string text = concat("step ", letter.step, ": ", what,
                                  "; weights and optimizer state "
                                  "are as before the step");
  if (options.non_finite == NonFiniteAction::kRaise)
    raise(ErrorKind::kNonFinite, text);
  if (c.skipped_in_a_row > options.max_skipped_in_a_row)
    raise(ErrorKind::kNonFinite,
          concat(text, "; ", c.skipped_in_a_row,
                 " steps were skipped in a "
                 "row, where max_skipped_in_a_row is ",
                 options.max_skipped_in_a_row,
                 ": lower the learning rate, or look at the data"));
  if (!warned_non_finite && world.rank() == 0)
    log(LogLevel::kWarning, text + "; this is said once");
  warned_non_finite = true;
}

void DataParallel::Impl::raise_operations_differ(const StepControl& decision) {
  const auto logs =
      world.control().exchange("libddp/operations", communicator->recent(),
                               Deadline::in(world.collective_timeout()));
  throw InvalidArgument(concat(
      "rank ", world.rank(), ": ", world.describe(decision.operations_rank),
      " issued other collectives than rank 0 before step ", decision.step,
      "; the update was not applied. Rank 0: ", logs[0], ". Rank ",
      decision.operations_rank, ": ", logs[decision.operations_rank],
      ". Issue the same operations, in the same order, on all ranks"));
}

/// After a collective has timed out, every rank that can still talk says
/// where it is: who issued something else, and who says nothing.
std::string DataParallel::Impl::stall_report() {
  const std::string mine = concat("step ", steps, ", ", communicator->recent());
  try {
    const auto all = world.control().exchange(
        "libddp/stall", mine,
        Deadline::in(std::min<Milliseconds>(std::chrono::seconds(5),
                                            world.collective_timeout())));
    std::string text = "; where each rank is:";
    for (int rank = 0; rank < world.size(); ++rank)
      text += concat(" [rank ", rank, ": ", all[rank], "]");
    return text;
  } catch (const Error& error) {
    return concat("; where each rank is could not be collected: ", error.what(),
                  ended_text(), "; this rank: ", mine);
  }
}

/// A rank that ends leaves a note of how far it came, for the others' errors.
void DataParallel::Impl::leave_note() noexcept {
  try {
    if (!failure)
      world.store().set(progress_key(world.rank()), std::to_string(steps));
  } catch (const std::exception&) {  // nobody is left to read it
  }
}

std::string DataParallel::Impl::ended_text() {
  std::string text;
  for (int rank = 0; rank < world.size(); ++rank) {
    try {
      if (const auto count = world.store().find(progress_key(rank)))
        text += concat("; rank ", rank, " ended after ", *count,
                       " steps: give all ranks as many batches, or join()");
    } catch (const Error&) {
      return text;
    }
  }
  return text;
}

void DataParallel::Impl::fail(const char* call, const Error& error) {
  std::string text = concat(world.describe(world.rank()), ", ", call,
                            " of step ", steps, ": ", error.what());
  if (error.kind() == ErrorKind::kTimeout) text += stall_report();
  failure = Error(text, error.kind());
  world.control().announce_failure(error.kind(), text);
  communicator->abort(text);
  raise(error.kind(), text);
}

}  // namespace ddp
