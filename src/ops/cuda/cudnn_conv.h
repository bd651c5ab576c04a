// Convolutions as cuDNN graphs: a problem becomes an operation graph, the library's heuristics name
// engines, and the first that keeps the rules becomes a plan. Plans can be made for a card that is
// not there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/cuda/cudnn_api.h"
#include "ops/ops.h"

namespace crema::cuda {

enum class ConvDirection : uint8_t { forward, data, filter };

/// One direction of a convolution. Sizes are N,C,[D,]H,W and K,C/groups,[D,]H,W; all tensors lie in
/// the same layout.
struct ConvProblem {
  ConvDirection direction = ConvDirection::forward;
  std::vector<int64_t> x, w, y, pad, stride, dilation;
  Layout layout = Layout::nchw;
  DType dtype = DType::f32;     // of x, y and w
  DType dw_dtype = DType::f32;  // of dw
  /// Forward only, in this order: + bias [K] (f32), + residual (like y), relu.
  bool bias = false, residual = false, relu = false;
  friend auto operator<=>(const ConvProblem&, const ConvProblem&) = default;
  friend bool operator==(const ConvProblem&, const ConvProblem&) = default;
};

/// desc's direction in these terms, one spatial axis as two, without bias, residual and relu.
ConvProblem conv_problem(const ConvDesc& desc, ConvDirection direction);

/// What an engine must keep to be chosen.
struct EngineRules {
  size_t workspace_limit = size_t{128} << 20;
  bool allow_tf32 = false;       // f32 on tensor cores
  bool is_deterministic = true;  // the same bits each run
  friend auto operator<=>(const EngineRules&, const EngineRules&) = default;
  friend bool operator==(const EngineRules&, const EngineRules&) = default;
};

struct ConvPointers {
  const void *x = nullptr, *w = nullptr, *y = nullptr;  // the result is one of them
  const void *bias = nullptr, *residual = nullptr;
  void* workspace = nullptr;
};

struct PlanParts {
  std::shared_ptr<const Descriptor> graph;  // of all plans that were found for it
  Descriptor config, plan;
  size_t workspace_bytes;
  bool uses_tensor_cores;
  int64_t engine;  // the library's number
};

/// A finished plan.
class ConvGraph {
 public:
  ConvGraph(PlanParts parts, const ConvProblem& problem);
  size_t workspace_bytes() const { return parts_.workspace_bytes; }
  bool uses_tensor_cores() const { return parts_.uses_tensor_cores; }
  int64_t engine() const { return parts_.engine; }
  void run(cudnnHandle_t handle, const ConvPointers& pointers) const;

 private:
  PlanParts parts_;
  bool bias_, residual_;
};

using ConvPlans = std::vector<std::shared_ptr<const ConvGraph>>;

/// The library, for one card.
class Cudnn {
 public:
  /// For the current card, on stream.
  explicit Cudnn(cudaStream_t stream);
  /// For a card described as cuDNN's device properties in JSON: plans only.
  explicit Cudnn(const std::string& device_json);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  /// A plan, kept for the next that asks; nullptr where no engine keeps the rules.
  std::shared_ptr<const ConvGraph> plan(const ConvProblem& problem, const EngineRules& rules);
  cudnnHandle_t handle() const { return handle_; }

  /// Gives the place of the plan to take among several that keep the rules, in the order of the
  /// heuristics; without it the first is taken.
  using Choose = std::function<size_t(const ConvProblem&, const EngineRules&, const ConvPlans&)>;
  void choose_by(Choose choose) { choose_ = std::move(choose); }

 private:
  /// Plans that keep the rules, best first, `most` at most.
  ConvPlans search(const ConvProblem& problem, const EngineRules& rules, size_t most);
  void search(const ConvProblem& problem, const EngineRules& rules, cudnnBackendHeurMode_t mode,
              bool on_tensor_cores, size_t most, ConvPlans& found);

  cudnnHandle_t handle_ = nullptr;
  std::optional<Descriptor> device_;
  Choose choose_;
  std::map<std::pair<ConvProblem, EngineRules>, std::shared_ptr<const ConvGraph>> plans_;
};

}  // namespace crema::cuda
