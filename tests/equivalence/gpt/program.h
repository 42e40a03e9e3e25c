/// \file
/// Runs the program gpt as a launcher would, for tests.
#pragma once

#include <string>
#include <vector>

namespace gpt {

struct ProgramResult {
  int exit_code = 0;
  std::string output;  ///< standard output and error
};

/// Runs `gpt arguments` on `ranks` ranks, under mpirun if there are several.
ProgramResult run_program(int ranks, const std::string& arguments);

/// Writes `bytes` of a made-up language to `path`: words of a small
/// dictionary, the same each time, so that a model can learn something.
void write_text(const std::string& path, std::size_t bytes);

/// The values of one key in a file of JSON lines.
std::vector<double> read_log(const std::string& path, const std::string& key);

/// The last line of an output.
std::string last_line(const std::string& output);

}  // namespace gpt
