// What only the CPU twins promise: threads and instruction sets do not show.
#include <gtest/gtest.h>
#include <omp.h>

#include "kernels/cpu/tiles.h"
#include "kernels/elementwise.h"
#include "tests/unit/kernels/update_case.h"

namespace ddp::test {
namespace {

struct Bits {
  std::vector<std::vector<unsigned char>> weights;
  double norm = 0;
  std::uint64_t checksum = 0;
  bool operator==(const Bits&) const = default;
};

Bits with_threads(int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  const UpdateCase one({.weight = DType::kBFloat16,
                        .master = true,
                        .sources = 2,
                        .numel = 150'001,
                        .offset = 1});
  const UpdateTable table({one.run()}, DType::kBFloat16, DType::kFloat32,
                          Device::cpu());
  StepControl control;
  control.time = 2;
  NormPart part;
  norm(table, NormKind::kTwo, 2, &part, StreamView::cpu());
  const AdamStep step;
  adam(table, {&step, 1}, &control, {}, StreamView::cpu());
  const UpdateRun run = one.run();
  Bits bits{one.bytes(), part.value, 0};
  checksum({run.master, run.numel, DType::kFloat32, Device::cpu()}, 1,
           &bits.checksum, StreamView::cpu());
  omp_set_num_threads(before);
  return bits;
}

TEST(Threads, DoNotChangeABit) {
  const Bits one = with_threads(1);
  EXPECT_EQ(one, with_threads(2));
  EXPECT_EQ(one, with_threads(5));
}

template <typename S>
std::vector<S> random_numbers(DType dtype, unsigned seed) {
  std::vector<S> result;
  for (const double x : random_values(dtype, cpu::kTile - 3, seed, 1e-6, 9e4))
    result.push_back(static_cast<S>(x));
  return result;
}

template <typename S>
void expect_equal_tiles(const cpu::Tiles<S>& a, const cpu::Tiles<S>& b) {
  const DType dtype = sizeof(S) == 4 ? DType::kFloat32 : DType::kFloat64;
  const auto n = cpu::kTile - 3;
  const auto w = random_numbers<S>(dtype, 1), m = random_numbers<S>(dtype, 2);
  const auto g = random_numbers<S>(dtype, 4);
  auto v = random_numbers<S>(dtype, 3);
  for (S& x : v) x = x < 0 ? -x : x;
  const auto c =
      formula::adam_coefficients<S>({1e-3, 0.9, 0.999, 1e-8, 0.1, true}, 3);
  auto w1 = w, w2 = w, m1 = m, m2 = m, v1 = v, v2 = v;
  a.adam(w1.data(), m1.data(), v1.data(), g.data(), S(0.3), n, c);
  b.adam(w2.data(), m2.data(), v2.data(), g.data(), S(0.3), n, c);
  EXPECT_EQ(w1, w2);
  EXPECT_EQ(m1, m2);
  EXPECT_EQ(v1, v2);
  for (int kind = 0; kind < 4; ++kind) {
    double lanes1[cpu::kLanes] = {}, lanes2[cpu::kLanes] = {};
    a.norm[kind](lanes1, g.data(), 3, n);
    b.norm[kind](lanes2, g.data(), 3, n);
    for (int i = 0; i < cpu::kLanes; ++i) EXPECT_EQ(lanes1[i], lanes2[i]);
  }
  for (int type = 0; type < 4; ++type) {
    std::vector<unsigned char> x(8 * cpu::kTile), y(8 * cpu::kTile);
    a.narrow[type](x.data(), g.data(), n);
    b.narrow[type](y.data(), g.data(), n);
    EXPECT_EQ(x, y);
    a.widen[type](w1.data(), x.data(), n);
    b.widen[type](w2.data(), x.data(), n);
    EXPECT_EQ(w1, w2);
  }
}

TEST(InstructionSets, DoNotChangeABit) {
  const cpu::TileSet& baseline = cpu::tile_set(cpu::Isa::kBaseline);
  for (const cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (!cpu::has(isa)) continue;
    const cpu::TileSet& other = cpu::tile_set(isa);
    expect_equal_tiles(baseline.single, other.single);
    expect_equal_tiles(baseline.wide, other.wide);
    const auto bytes = random_numbers<double>(DType::kFloat64, 9);
    EXPECT_EQ(baseline.checksum(bytes.data(), 1000, 5, 6),
              other.checksum(bytes.data(), 1000, 5, 6));
  }
}

#if !defined(DDP_HAS_CUDA)
TEST(WithoutCuda, AGpuStreamNamesTheOptionThatBringsIt) {
  const StreamView gpu{Device::cuda(0)};
  try {
    fill_zero({}, gpu);
    FAIL() << "expected Unavailable";
  } catch (const Unavailable& error) {
    EXPECT_NE(std::string(error.what()).find("LIBDDP_CUDA"), std::string::npos);
  }
  EXPECT_THROW(UpdateTable({}, DType::kFloat32, DType::kFloat32, gpu.device),
               Unavailable);
}
#endif

}  // namespace
}  // namespace ddp::test
