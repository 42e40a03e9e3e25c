#include "libddp/data/staging.h"

#include <nlohmann/json.hpp>

#include "kernels/core/error.h"
#include "libddp/bootstrap/control_plane.h"
#include "libddp/data/checksum.h"
#include "libddp/data/stager.h"

namespace ddp {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kGrace{10};

// What a stager tells all ranks: its files, or why there are none.
std::string report(const std::vector<StagedFile>& files) {
  Json list = Json::array();
  for (const StagedFile& file : files)
    list.push_back({{"source", file.source},
                    {"path", file.path},
                    {"bytes", file.bytes},
                    {"checksum", file.checksum}});
  return Json{{"files", list}}.dump();
}

std::string report(const std::exception& error, const StagingGroup& group) {
  return Json{{"kind", static_cast<int>(kind_of(error))},
              {"error", group.description + ": staging: " + error.what()}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string stage(const std::vector<std::string>& files,
                  const StagingOptions& options, const StagingGroup& group) {
  if (!group.is_stager()) return {};
  try {
    return report(stage_on_this_machine(files, options.cache_dir,
                                        options.keep_free_bytes,
                                        Deadline::in(options.timeout)));
  } catch (const std::exception& error) {
    return report(error, group);
  }
}

void rethrow_failure(const Json& message) {
  if (message.contains("error"))
    raise(static_cast<ErrorKind>(message["kind"].get<int>()),
          message["error"].get<std::string>());
}

void check_equal(const Json& first, int first_rank, const Json& other,
                 int other_rank) {
  DDP_EXPECT(first.size() == other.size(), InvalidArgument, "staging: rank ",
             first_rank, " was given ", first.size(), " files, rank ",
             other_rank, " ", other.size(),
             "; do both see the same shared folder?");
  for (std::size_t i = 0; i < first.size(); ++i)
    DDP_EXPECT(first[i]["checksum"] == other[i]["checksum"], CorruptData,
               "staging: file ", i, " differs between machines: ",
               first[i]["source"].get<std::string>(), " on rank ", first_rank,
               " has checksum ",
               to_hex(first[i]["checksum"].get<std::uint64_t>()), ", ",
               other[i]["source"].get<std::string>(), " on rank ", other_rank,
               " has ", to_hex(other[i]["checksum"].get<std::uint64_t>()));
}

std::vector<std::string> paths_of(const Json& files) {
  std::vector<std::string> paths;
  for (const Json& file : files)
    paths.push_back(file["path"].get<std::string>());
  return paths;
}

}  // namespace

std::vector<std::string> stage_files(const std::vector<std::string>& files,
                                     const StagingOptions& options,
                                     const StagingGroup& group) {
  const Deadline wait = Deadline::in(options.timeout + kGrace);
  const auto messages = group.control->exchange(
      "data/staging", stage(files, options, group), wait);
  std::vector<std::pair<int, Json>> stagers;
  for (std::size_t rank = 0; rank < messages.size(); ++rank)
    if (!messages[rank].empty())
      stagers.emplace_back(static_cast<int>(rank), Json::parse(messages[rank]));
  for (const auto& [rank, message] : stagers) rethrow_failure(message);
  std::vector<std::string> paths;
  const auto& [first_rank, first] = stagers.front();
  for (const auto& [rank, message] : stagers) {
    check_equal(first["files"], first_rank, message["files"], rank);
    if (rank == group.stager) paths = paths_of(message["files"]);
  }
  return paths;
}

}  // namespace ddp
