#include "libddp/data/token_file.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "kernels/core/error.h"

namespace ddp {
namespace {

static_assert(std::endian::native == std::endian::little,
              "token files are mapped, not converted");

TokenFormat resolve(TokenFormat format, const std::string& path) {
  if (format != TokenFormat::kByName) return format;
  return path.ends_with(".bin") ? TokenFormat::kLlmC : TokenFormat::kBytes;
}

std::int64_t count_llm_c(const MappedFile& file) {
  const auto bytes = static_cast<std::int64_t>(file.size());
  DDP_EXPECT(bytes >= TokenFile::kHeaderBytes, CorruptData, file.path(),
             ": has ", bytes,
             " bytes, but the header of a token file alone "
             "takes ",
             TokenFile::kHeaderBytes);
  std::array<std::int32_t, 3> header;
  std::memcpy(header.data(), file.bytes().data(), sizeof header);
  DDP_EXPECT(header[0] == TokenFile::kMagic, CorruptData, file.path(),
             ": begins with ", header[0], ", but a token file with ",
             TokenFile::kMagic, "; is it raw text? Then ask for bytes");
  DDP_EXPECT(header[1] == TokenFile::kVersion, CorruptData, file.path(),
             ": is of version ", header[1], ", but version ",
             TokenFile::kVersion,
             " (uint16 tokens) is read here; tokenise "
             "the text again");
  const std::int64_t count = header[2];
  DDP_EXPECT(count > 0, CorruptData, file.path(), ": says it holds ", count,
             " tokens; it must hold at least 1");
  const std::int64_t expected = TokenFile::kHeaderBytes + 2 * count;
  DDP_EXPECT(bytes == expected, CorruptData, file.path(), ": has ", bytes,
             " bytes, but its header says ", count, " tokens, which take ",
             expected, "; copy or download it again");
  return count;
}

std::int64_t count_tokens(const MappedFile& file, TokenFormat format) {
  DDP_EXPECT(file.size() > 0, CorruptData, file.path(),
             ": is empty (0 bytes), but must hold at least 1 token");
  return format == TokenFormat::kLlmC ? count_llm_c(file)
                                      : static_cast<std::int64_t>(file.size());
}

struct Glob {
  glob_t found{};
  ~Glob() { ::globfree(&found); }
};

}  // namespace

TokenFile::TokenFile(const std::string& path, TokenFormat format)
    : file_(path),
      format_(resolve(format, path)),
      size_(count_tokens(file_, format_)) {}

void TokenFile::read(std::int64_t first, std::int64_t count,
                     std::int32_t* out) const {
  const std::byte* bytes = file_.bytes().data();
  if (format_ == TokenFormat::kBytes) {
    const auto* tokens = reinterpret_cast<const std::uint8_t*>(bytes) + first;
    std::copy(tokens, tokens + count, out);
  } else {
    // Aligned: a mapping starts on a page, the tokens after 1024 bytes.
    const auto* tokens =
        reinterpret_cast<const std::uint16_t*>(bytes + kHeaderBytes) + first;
    std::copy(tokens, tokens + count, out);
  }
}

std::vector<std::string> match_files(const std::string& pattern) {
  Glob glob;
  const int result =
      ::glob(pattern.c_str(), GLOB_ERR | GLOB_TILDE, nullptr, &glob.found);
  DDP_EXPECT(result != GLOB_ABORTED, InvalidArgument, "data files \"", pattern,
             "\": a folder on the way cannot be read: ", std::strerror(errno));
  DDP_EXPECT(result == 0 && glob.found.gl_pathc > 0, InvalidArgument,
             "data files \"", pattern,
             "\": 0 files match; check path and pattern, and quote it so that "
             "the shell leaves it alone");
  return {glob.found.gl_pathv, glob.found.gl_pathv + glob.found.gl_pathc};
}

}  // namespace ddp
