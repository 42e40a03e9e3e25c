#include "benchmarks/gpt_ops/checks.h"

namespace bench {

void check_attention(Checker& checker) {
  const AttentionShape shapes[] = {
      {2, 64, 3, 64}, {1, 200, 2, 64}, {2, 70, 2, 32},   {1, 130, 3, 128},
      {1, 1, 1, 64},  {1, 33, 2, 16},  {1, 129, 12, 64}, {1, 40, 1, 40}};
  for (const AttentionShape& shape : shapes) {
    const std::string label =
        ddp::concat("[", shape.batch, ", ", shape.sequence, ", ", shape.heads,
                    ", ", shape.head_size, "]");
    const std::int64_t numel =
        shape.batch * shape.sequence * shape.heads * shape.head_size;
    const Values qkv = checker.random(3 * numel);
    const Values dout = checker.random(numel);
    const AttentionResult want = attention(qkv, dout, shape);
    const DeviceTensor device_qkv = checker.upload(qkv);
    const DeviceTensor device_dout = checker.upload(dout);
    const DeviceTensor out = checker.empty(numel);
    const DeviceTensor saved = checker.empty_floats(static_cast<std::int64_t>(
        checker.ops.attention_saved_bytes(shape) / sizeof(float)));
    checker.ops.attention_forward(out, saved, device_qkv, shape);
    checker.near("attention_forward " + label, out.values(), want.out);
    const DeviceTensor dqkv = checker.empty(3 * numel);
    const DeviceTensor again = checker.empty(3 * numel);
    checker.ops.attention_backward(dqkv, device_dout, out, saved, device_qkv,
                                   shape);
    checker.near("attention_backward " + label, dqkv.values(), want.dqkv);
    checker.ops.attention_backward(again, device_dout, out, saved, device_qkv,
                                   shape);
    // cuDNN's default backward adds with atomics.
    if (gpt::attention_name(checker.ops) != "cudnn")
      checker.same_bits("attention_backward " + label, dqkv, again);
  }
}

}  // namespace bench
