// Sources of the rows: BVLC pull request 3057 (ceil_mode), NVCaffe 0.17 (torch_pooling, types and
// algorithms), DeepLab (hole), SegNet (class_weighting), Intel's Caffe and the OpenCL branch
// (engines), yjxiong's (mem_param).
#include "io/fork_text.h"

#include <algorithm>
#include <iterator>

namespace crema {
namespace {

constexpr ForkField kFields[] = {
    {"PoolingParameter", "ceil_mode", "round_mode", "CEIL", "FLOOR"},
    {"PoolingParameter", "torch_pooling", "round_mode", "FLOOR", "CEIL"},
    {"ConvolutionParameter", "hole", "dilation"},
    {"LossParameter", "class_weighting", "class_weight"},
};

struct Hint {
  std::string_view message, field;
};

constexpr Hint kHints[] = {
    {"NetParameter", "default_conv_algos_override"},
    {"NetParameter", "reduce_buckets"},
    {"NetParameter", "default_cudnn_math_override"},
    {"NetParameter", "eltwise_mem_sharing"},
    {"NetParameter", "engine"},
    {"NetParameter", "compile_net_state"},
    {"NetParameter", "multinode"},
    {"NetParameter", "mem_param"},
    {"NetParameter", "optimize_mem"},
    {"SolverParameter", "solver_data_type"},
    {"SolverParameter", "store_blobs_in_old_format"},
    {"SolverParameter", "engine"},
};

constexpr std::string_view kEngines[] = {"MKL2017", "MKLDNN", "LIBDNN", "SPATIAL", "INTEL_SPATIAL"};

}  // namespace

const ForkField* find_fork_field(std::string_view message, std::string_view field) {
  const auto* found = std::find_if(std::begin(kFields), std::end(kFields), [&](const ForkField& f) {
    return message == f.message && field == f.field;
  });
  return found == std::end(kFields) ? nullptr : found;
}

bool is_fork_hint(std::string_view message, std::string_view field) {
  return std::any_of(std::begin(kHints), std::end(kHints), [&](const Hint& hint) {
    return message == hint.message && field == hint.field;
  });
}

bool is_fork_engine(std::string_view word) {
  return std::find(std::begin(kEngines), std::end(kEngines), word) != std::end(kEngines);
}

}  // namespace crema
