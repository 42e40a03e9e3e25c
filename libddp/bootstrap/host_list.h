/// \file
/// Slurm's compact lists of hosts, of task counts and of task ids. Arithmetic
/// on text: no process is started and no file is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddp {

/// Expands "n[1-3,7],rack[0-1]node[01-02],login" in order; several brackets
/// in one name are a product, and the zero padding of a range's start is
/// kept. Throws InvalidArgument that quotes the list and the bad part, also
/// for more than 2^20 names.
std::vector<std::string> expand_host_list(std::string_view list);

/// Expands SLURM_STEP_TASKS_PER_NODE: "2(x2),1" is {2, 2, 1}. Throws
/// InvalidArgument that quotes the text.
std::vector<int> expand_tasks_per_node(std::string_view text);

/// Splits SLURM_GTIDS, "0,2,3". Throws InvalidArgument that quotes the text.
std::vector<int> split_task_ids(std::string_view text);

}  // namespace ddp
