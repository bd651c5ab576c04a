// The real cuDNN plans every convolution of every shipped net, in each precision, for cards that
// are not there: a plan exists for each direction, inside the workspace limit, with tensor cores
// where they should be.
#include <gtest/gtest.h>

#include <filesystem>

#include "cuda_plan/described_cards.h"
#include "cuda_plan/net_convolutions.h"

#if defined(CREMA_HAS_CUDNN)
#include "ops/cuda/conv_graphs.h"
#endif

namespace crema {
namespace {

constexpr int64_t kBatch = 32;
constexpr size_t kWorkspaceLimit = size_t{128} << 20;

struct Card {
  const char* name;
  const char* json;
};
struct Precision {
  const char* name;
  DType dtype;
  bool tf32;
};
struct PlanCase {
  std::string net;
  Card card;
  Precision precision;
};
void PrintTo(const PlanCase& c, std::ostream* out) {
  *out << c.net << ' ' << c.card.name << ' ' << c.precision.name;
}

class CudaPlan : public testing::TestWithParam<PlanCase> {};

#if defined(CREMA_HAS_CUDNN)

/// cuDNN with its kept plans, one for each card.
cuda::Cudnn& cudnn_for(const Card& card) {
  static std::map<std::string, std::unique_ptr<cuda::Cudnn>> known;
  auto& cudnn = known[card.name];
  if (!cudnn) cudnn = std::make_unique<cuda::Cudnn>(std::string(card.json));
  return *cudnn;
}

/// Tensor cores take at least 4 channels of a group; below that (depthwise, grey and colour
/// pictures) cuDNN may choose other engines.
bool has_channels_for_tensor_cores(const ConvDesc& desc) {
  return desc.w.shape[1] >= 4 && desc.w.shape[0] / desc.groups >= 4;
}

/// Counts the plans that could use tensor cores, and those that do.
struct TensorCores {
  int possible = 0, used = 0;
};

void check_graph(const std::shared_ptr<const cuda::ConvGraph>& graph, const char* direction,
                 bool forbids_tensor_cores, TensorCores* count) {
  ASSERT_NE(graph, nullptr) << direction;
  EXPECT_LE(graph->workspace_bytes(), kWorkspaceLimit) << direction;
  if (forbids_tensor_cores) {
    EXPECT_FALSE(graph->uses_tensor_cores()) << direction;
  }
  if (count == nullptr) return;
  ++count->possible;
  count->used += graph->uses_tensor_cores() ? 1 : 0;
}

TEST_P(CudaPlan, EveryConvolutionHasAPlan) {
  const PlanCase& c = GetParam();
  const bool is_f32 = c.precision.dtype == DType::f32 && !c.precision.tf32;
  const auto convolutions =
      net_convolutions(CREMA_SOURCE_DIR "/models/" + c.net + "/deploy.prototxt", kBatch);
  ASSERT_FALSE(convolutions.empty());
  TensorCores cores;
  for (const auto& [layer, plain] : convolutions) {
    SCOPED_TRACE(layer);
    ConvDesc desc = plain;
    desc.x.dtype = desc.y.dtype = c.precision.dtype;
    const Layout layout = cuda::preferred_layout(desc, c.precision.tf32);
    EXPECT_EQ(layout, is_f32 ? Layout::nchw : Layout::nhwc);
    desc.x.layout = desc.y.layout = layout;
    desc.act = {ActKind::relu};
    const auto graphs =
        cuda::plan_conv_graphs(cudnn_for(c.card), desc, {.allow_tf32 = c.precision.tf32});
    ASSERT_TRUE(graphs) << "no plan";
    TensorCores* count = has_channels_for_tensor_cores(desc) ? &cores : nullptr;
    check_graph(graphs->forward, "forward", is_f32, count);
    check_graph(graphs->filter, "filter", is_f32, count);
    if (desc.need_dx) check_graph(graphs->data, "data", is_f32, count);
  }
  if (is_f32) return;
  // Some gradients of few channels are faster without, so the library says: GoogLeNet's 5x5_reduce.
  // vgg16 in tf32 on the A100: 14 of 24 plans that fit the limits.
  const int quarters = c.card.json == kH200 ? 3 : 2;
  EXPECT_GE(4 * cores.used, quarters * cores.possible) << cores.used << " of " << cores.possible;
}

#else

TEST_P(CudaPlan, EveryConvolutionHasAPlan) { GTEST_SKIP() << "cuDNN is not here"; }

#endif

std::vector<PlanCase> cases() {
  std::vector<std::string> nets;
  for (const auto& entry : std::filesystem::directory_iterator(CREMA_SOURCE_DIR "/models")) {
    if (std::filesystem::exists(entry.path() / "deploy.prototxt")) {
      nets.push_back(entry.path().filename());
    }
  }
  std::sort(nets.begin(), nets.end());
  std::vector<PlanCase> out;
  for (const std::string& net : nets) {
    for (const Card& card : {Card{"H200", kH200}, Card{"A100", kA100}}) {
      for (const Precision& precision :
           {Precision{"f32", DType::f32, false}, Precision{"tf32", DType::f32, true},
            Precision{"bf16", DType::bf16, false}, Precision{"f16", DType::f16, false}}) {
        out.push_back({net, card, precision});
      }
    }
  }
  return out;
}

std::string case_name(const testing::TestParamInfo<PlanCase>& info) {
  std::string name = info.param.net + '_' + info.param.card.name + '_' + info.param.precision.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, CudaPlan, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace crema
