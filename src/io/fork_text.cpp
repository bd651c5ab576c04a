// Sources of the rows: BVLC pull request 3057 (ceil_mode), NVCaffe 0.17 (torch_pooling, types and
// algorithms), DeepLab (hole, softmaxloss_param), Intel's Caffe and the
// OpenCL branch (engines), yjxiong's (mem_param).
#include "io/fork_text.h"

#include <algorithm>
#include <iterator>

#include "base/str.h"
#include "io/fork_layers.h"

namespace crema {
namespace {

constexpr ForkField kFields[] = {
    {"PoolingParameter", "ceil_mode", "round_mode", "CEIL", "FLOOR"},
    {"PoolingParameter", "torch_pooling", "round_mode", "FLOOR", "CEIL"},
    {"ConvolutionParameter", "hole", "dilation"},
    {"LayerParameter", "softmaxloss_param", "loss_param"},
    {"V1LayerParameter", "softmaxloss_param", "loss_param"},
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
    {"SolverParameter", "test_and_snapshot_last_epochs"},
    {"SolverParameter", "plateau_winsize"},
};

// Blocks of layers that are not built in, with names so near to ours that they would be taken for
// misspelled: the layer's type is the mistake to name.
constexpr std::string_view kNearBlocks[] = {"grn_param", "gru_param", "resample_param", "st_param",
                                            "unpooling_param"};

constexpr std::string_view kEngines[] = {"MKL2017", "MKLDNN", "LIBDNN", "SPATIAL", "INTEL_SPATIAL"};

}  // namespace

const ForkField* find_fork_field(std::string_view message, std::string_view field) {
  const auto* found = std::find_if(std::begin(kFields), std::end(kFields), [&](const ForkField& f) {
    return message == f.message && field == f.field;
  });
  return found == std::end(kFields) ? nullptr : found;
}

bool is_fork_block(std::string_view field) {
  return std::find(std::begin(kNearBlocks), std::end(kNearBlocks), field) != std::end(kNearBlocks);
}

bool is_fork_hint(std::string_view message, std::string_view field) {
  return std::any_of(std::begin(kHints), std::end(kHints), [&](const Hint& hint) {
    return message == hint.message && field == hint.field;
  });
}

std::string fork_value_note(std::string_view field, std::string_view value) {
  if (field == "crema.V1LayerParameter.type") {
    const std::string fork = fork_of_layer(value);
    return fork.empty() ? "" : str(" (a layer of ", fork, ')');
  }
  if (field == "crema.DataParameter.backend" && value.find("HDF5") != std::string_view::npos) {
    return ": HDF5 files are read by a layer of type \"HDF5Data\"";
  }
  if (field == "crema.SolverParameter.device_id") {
    return ": several GPUs are named on the command line, --gpu=0,1";
  }
  return "";
}

bool is_fork_engine(std::string_view word) {
  return std::find(std::begin(kEngines), std::end(kEngines), word) != std::end(kEngines);
}

}  // namespace crema
