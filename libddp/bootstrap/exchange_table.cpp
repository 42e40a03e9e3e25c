#include "libddp/bootstrap/exchange_table.h"

#include <algorithm>

namespace ddp {
namespace {

std::string joined(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) {
    if (!text.empty()) text += ",";
    text += std::to_string(rank);
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::optional<ExchangeTable::Round> ExchangeTable::add(const std::string& topic,
                                                       std::int64_t turn,
                                                       Waiter waiter,
                                                       std::string message) {
  const auto entry = rounds_.try_emplace({topic, turn}).first;
  Round& round = entry->second;
  round.messages.resize(static_cast<std::size_t>(world_size_));
  round.messages.at(static_cast<std::size_t>(waiter.rank)) = std::move(message);
  round.waiters.push_back(waiter);
  const bool is_complete =
      std::all_of(round.messages.begin(), round.messages.end(),
                  [](const auto& one) { return one.has_value(); });
  if (!is_complete) return std::nullopt;
  std::optional<Round> result = std::move(round);
  rounds_.erase(entry);
  return result;
}

std::vector<int> ExchangeTable::missing(const std::string& topic,
                                        std::int64_t turn) const {
  std::vector<int> ranks;
  const auto found = rounds_.find({topic, turn});
  for (int rank = 0; rank < world_size_; ++rank) {
    if (found == rounds_.end() ||
        !found->second.messages[static_cast<std::size_t>(rank)])
      ranks.push_back(rank);
  }
  return ranks;
}

std::string ExchangeTable::describe_open() const {
  std::string text;
  for (const auto& [key, round] : rounds_) {
    if (!text.empty()) text += "; ";
    text += "exchange \"" + key.first + "\" " +
            list_missing(missing(key.first, key.second), world_size_);
  }
  return text;
}

std::vector<std::pair<std::string, ExchangeTable::Round>>
ExchangeTable::take_lacking(int rank) {
  std::vector<std::pair<std::string, Round>> taken;
  for (auto entry = rounds_.begin(); entry != rounds_.end();) {
    if (entry->second.messages[static_cast<std::size_t>(rank)]) {
      ++entry;
      continue;
    }
    taken.emplace_back(entry->first.first, std::move(entry->second));
    entry = rounds_.erase(entry);
  }
  return taken;
}

std::string list_missing(const std::vector<int>& missing, int world_size) {
  std::vector<int> present;
  for (int rank = 0; rank < world_size; ++rank)
    if (std::find(missing.begin(), missing.end(), rank) == missing.end())
      present.push_back(rank);
  return "joined: " + joined(present) + "; missing: " + joined(missing);
}

}  // namespace ddp
