// Dropout's masks: the loops of every instruction set give the bits of one index after another.
#include "ops/kernels/dropout.h"

#include "base/philox.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/ops_harness.h"

namespace crema {
namespace {

struct DropoutRow {
  const char* name;
  int64_t batch, channels, plane;
  bool is_nhwc;
};

void PrintTo(const DropoutRow& row, std::ostream* out) { *out << row.name; }

const std::vector<DropoutRow> kRows = {
    {"nchw", 3, 7, 64, false},
    {"nchw_with_a_rest", 1, 1, 1003, false},
    {"nchw_one", 1, 1, 1, false},
    {"nhwc_planes_of_whole_blocks", 2, 64, 64, true},
    {"nhwc_runs_that_begin_within_blocks", 2, 48, 169, true},
    {"nhwc_channels_over_vectors", 3, 37, 35, true},
    {"nhwc_few_channels", 2, 3, 50, true},
    {"nhwc_one_pixel", 4, 20, 1, true},
};

class DropoutBits : public testing::TestWithParam<DropoutRow> {};

TEST_P(DropoutBits, AreThoseOfSingleIndices) {
  const DropoutRow& row = GetParam();
  const int64_t n = row.batch * row.channels * row.plane,
                runs = DropoutOf<float>::runs_of(row.plane);
  const int64_t indices = row.is_nhwc ? row.batch * runs * row.channels : (n + 3) / 4;
  const std::vector<float> x = random_values(n, 1), before = random_values(n, 2);
  const uint64_t forwards = 0x300000005;
  for (const bool accumulate : {false, true}) {
    std::vector<float> y = before;
    DropoutOf<float> f{.x = x.data(),
                       .y = y.data(),
                       .n = n,
                       .key = mix_key(5, 6),
                       .forward_count = &forwards,
                       .ratio = 0.375f,
                       .scale = 1.6f,
                       .accumulate = accumulate,
                       .is_nhwc = row.is_nhwc,
                       .channels = Divider(row.is_nhwc ? row.channels : 1),
                       .runs = Divider(runs),
                       .plane = row.plane};
    for (int64_t i = 0; i < indices; ++i) f(i);
    for (const char* name : {"baseline", "avx2", "avx512"}) {
      const Isa* isa = isa_named(name);
      if (!isa) continue;
      CpuOps ops(*isa);
      std::vector<float> drawn = before;
      f.y = drawn.data();
      run(ops, DropoutMask{f}, indices);
      EXPECT_EQ(drawn, y) << name << (accumulate ? ", added" : "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dropout, DropoutBits, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace crema
