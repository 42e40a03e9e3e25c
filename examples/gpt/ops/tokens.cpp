#include "examples/gpt/ops/tokens.h"

#include "kernels/core/error.h"

namespace gpt {

void check_tokens(const std::int32_t* tokens, std::int64_t count,
                  std::int32_t least, std::int64_t vocabulary,
                  const char* what) {
  for (std::int64_t i = 0; i < count; ++i)
    DDP_EXPECT(tokens[i] >= least && tokens[i] < vocabulary, InvalidArgument,
               what, " ", i, " is ", tokens[i], ", but the vocabulary has ",
               vocabulary, " entries; give data of the model's tokenizer");
}

}  // namespace gpt
