#include "tests/equivalence/gpt/program.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "examples/gpt/model/random.h"

namespace gpt {

ProgramResult run_program(int ranks, const std::string& arguments) {
  std::string command = "exec ";
  if (ranks > 1)
    command += std::string(GPT_MPIEXEC) + " -n " + std::to_string(ranks) + " ";
  command += std::string(GPT_PROGRAM) + " " + arguments + " 2>&1";
  ProgramResult result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::array<char, 4096> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

void write_text(const std::string& path, std::size_t bytes) {
  std::string text;
  for (std::uint64_t i = 0; text.size() < bytes; ++i) {
    const std::uint64_t word = random_bits(3, 0, i) % 64;
    for (std::uint64_t letter = 0; letter < 2 + word % 5; ++letter)
      text += static_cast<char>('a' + random_bits(3, 1 + word, letter) % 26);
    text += i % 9 == 8 ? '\n' : ' ';
  }
  std::ofstream(path) << text.substr(0, bytes);
}

std::vector<double> read_log(const std::string& path, const std::string& key) {
  std::vector<double> values;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    values.push_back(nlohmann::json::parse(line).at(key).get<double>());
  return values;
}

std::string last_line(const std::string& output) {
  const std::size_t end = output.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t begin = output.rfind('\n', end);
  return output.substr(begin == std::string::npos ? 0 : begin + 1,
                       end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace gpt
