// The suites of tests/unit/gpt on a GPU.
#include "tests/unit/gpt/model_suite.h"
#include "tests/unit/gpt/ops_suite.h"

namespace gpt {
namespace {

constexpr auto kFp32 = ddp::DType::kFloat32;
constexpr auto kBf16 = ddp::DType::kBFloat16;
constexpr ddp::Device kGpu = ddp::Device::cuda(0);

// GPT-2's width, heads and vocabulary; a sequence that fills no tile; and
// heads of a size that only the general path takes.
INSTANTIATE_TEST_SUITE_P(
    Gpu, OpsTest,
    ::testing::Values(
        OpsCase{"fp32_d12", kGpu, kFp32, kFp32, {2, 128, 12, 64}, 50257},
        OpsCase{"fp32_odd", kGpu, kFp32, kFp32, {3, 77, 4, 32}, 131},
        OpsCase{"bf16_d12", kGpu, kBf16, kFp32, {2, 256, 12, 64}, 50257},
        OpsCase{"bf16_all", kGpu, kBf16, kBf16, {2, 128, 12, 64}, 1031},
        OpsCase{"bf16_odd", kGpu, kBf16, kFp32, {3, 77, 5, 64}, 131},
        OpsCase{"bf16_small_heads", kGpu, kBf16, kFp32, {2, 64, 4, 32}, 256}),
    case_name);

INSTANTIATE_TEST_SUITE_P(Gpu, ModelTest,
                         ::testing::Values(ModelCase{"fp32", kGpu, kFp32},
                                           ModelCase{"bf16", kGpu, kBf16}),
                         model_case_name);

}  // namespace
}  // namespace gpt
