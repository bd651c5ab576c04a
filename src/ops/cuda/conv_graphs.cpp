// Forward is fused as far as an engine is found, on tensor cores where they are allowed; what is
// left follows in a kernel of our own.
#include "ops/cuda/conv_graphs.h"

namespace crema::cuda {
namespace {

bool plan_forward(Cudnn& cudnn, const ConvDesc& desc, const EngineRules& rules,
                  ConvGraphs& graphs) {
  ConvProblem problem = conv_problem(desc, ConvDirection::forward);
  ConvProblem fused = problem;
  fused.bias = desc.bias;
  fused.residual = desc.residual;
  fused.relu = desc.act.kind == ActKind::relu && desc.act.slope == 0;
  std::shared_ptr<const ConvGraph> whole;
  if (fused != problem) whole = cudnn.plan(fused, rules);
  const bool may_use_tensor_cores = desc.x.dtype != DType::f32 || rules.allow_tf32;
  if (!whole || (may_use_tensor_cores && !whole->uses_tensor_cores())) {
    graphs.forward = cudnn.plan(problem, rules);
    if (!whole || (graphs.forward && graphs.forward->uses_tensor_cores())) {
      return graphs.forward != nullptr;
    }
  }
  graphs.forward = std::move(whole);
  graphs.fuses_bias = fused.bias;
  graphs.fuses_residual = fused.residual;
  graphs.fuses_act = fused.relu;
  return true;
}

/// dw in f32 where an engine writes that, else in x's type.
bool plan_filter(Cudnn& cudnn, const ConvDesc& desc, const EngineRules& rules, ConvGraphs& graphs) {
  for (const DType dtype : {DType::f32, desc.x.dtype}) {
    ConvProblem problem = conv_problem(desc, ConvDirection::filter);
    problem.dw_dtype = dtype;
    graphs.dw_dtype = dtype;
    graphs.filter = cudnn.plan(problem, rules);
    if (graphs.filter) return true;
  }
  return false;
}

}  // namespace

std::optional<ConvGraphs> plan_conv_graphs(Cudnn& cudnn, const ConvDesc& desc,
                                           const EngineRules& rules) {
  ConvGraphs graphs;
  if (!plan_forward(cudnn, desc, rules, graphs)) return std::nullopt;
  if (!desc.train) return graphs;
  if (!plan_filter(cudnn, desc, rules, graphs)) return std::nullopt;
  if (!desc.need_dx) return graphs;
  graphs.data = cudnn.plan(conv_problem(desc, ConvDirection::data), rules);
  if (!graphs.data) return std::nullopt;
  return graphs;
}

Layout preferred_layout(const ConvDesc& desc, bool allow_tf32) {
  if (desc.pad.axes > 3) return Layout::nchw;
  const bool wants_tensor_cores = desc.x.dtype != DType::f32 || allow_tf32;
  return wants_tensor_cores ? Layout::nhwc : Layout::nchw;
}

}  // namespace crema::cuda
