// Rules of fields and shapes, parameters and workspaces that several layers share.
#include "layers/common.h"

#include <limits>

#include "ops/kernels/eltwise.h"

namespace crema {

void require_countable(const char* what, const Shape& shape) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  int64_t count = 1;
  for (const int64_t dim : shape) {
    require(dim <= limit && count * dim <= limit, what, ": shape ", shape, " has more than ", limit,
            " elements");
    count *= dim;
  }
}

int64_t require_outputs(bool is_written, uint32_t num_output) {
  require(is_written, "num_output: missing");
  require(num_output >= 1, "num_output: must be at least 1");
  require(num_output <= static_cast<uint32_t>(std::numeric_limits<int32_t>::max()),
          "num_output: ", num_output, " is too large");
  return num_output;
}

FillerParameter constant_filler(float value) {
  FillerParameter filler;
  filler.set_type("constant");
  filler.set_value(value);
  return filler;
}

void declare(Param& param, const Shape& shape, const FillerParameter& filler, bool learnable) {
  param.shape = shape;
  param.filler = filler;
  param.learnable = learnable;
}

void no_gradient(Ops& ops, const Grad& gradient) {
  if (gradient && gradient.how == Write::overwrite) ops.fill(0, gradient.t);
}

namespace {

template <class Sum, class T>
void run_sum(Ops& ops, const CTensor& a, const CTensor& b, const Tensor& y,
             const SumCoefficients& coefficients, const Act& act) {
  run(ops,
      Sum{{.a = static_cast<const T*>(a.data),
           .b = static_cast<const T*>(b.data),
           .y = static_cast<T*>(y.data),
           .ca = coefficients.a,
           .cb = coefficients.b,
           .slope = act.slope,
           .relu = act.kind == ActKind::relu}},
      y.count());
}

}  // namespace

void weighted_sum(Ops& ops, const CTensor& a, const CTensor& b, const Tensor& y,
                  const SumCoefficients& coefficients, const Act& act) {
  switch (y.desc.dtype) {
    case DType::bf16:
      return run_sum<WeightedSumBf16, Bf16>(ops, a, b, y, coefficients, act);
    case DType::f16:
      return run_sum<WeightedSumF16, F16>(ops, a, b, y, coefficients, act);
    default:
      return run_sum<WeightedSum, float>(ops, a, b, y, coefficients, act);
  }
}

void residual_backward(Ops& ops, const CTensor& dy, const Grad& dresidual) {
  if (!dresidual || dresidual.t.data == dy.data) return;
  if (dresidual.how == Write::accumulate) return ops.add(dy, dresidual.t);
  ops.convert(dy, dresidual.t);
}

Grad param_gradient(const BackwardArgs& args, size_t i, bool is_first) {
  if (i >= args.dparams.size()) return {};
  Grad gradient = args.dparams[i];
  if (!is_first) gradient.how = Write::accumulate;
  return gradient;
}

CTensor reshaped(const CTensor& tensor, const Shape& shape) {
  return {tensor.data, {shape, tensor.desc.dtype}};
}
Tensor reshaped(const Tensor& tensor, const Shape& shape) {
  return {tensor.data, {shape, tensor.desc.dtype}};
}
Grad reshaped(const Grad& gradient, const Shape& shape) {
  return {reshaped(gradient.t, shape), gradient.how};
}

Tensor tensor_of(const Tensor& memory, const TensorDesc& desc) {
  return memory ? Tensor{memory.data, desc} : Tensor{};
}

Tensor f32_of(const Tensor& memory, const TensorDesc& desc) {
  return tensor_of(memory, {desc.shape, DType::f32, desc.layout});
}

namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

Tensor cut(const Tensor& whole, size_t offset, size_t bytes) {
  if (bytes == 0) return {};
  return {static_cast<char*>(whole.data) + offset, {{static_cast<int64_t>(bytes)}, DType::u8}};
}

}  // namespace

void WorkspaceParts::clear() {
  offsets_.clear();
  sizes_.clear();
  total_ = {};
}

int WorkspaceParts::add(const Needs& needs) {
  const Needs start{aligned(total_.scratch), aligned(total_.saved), aligned(total_.state),
                    aligned(total_.packed)};
  offsets_.push_back(start);
  sizes_.push_back(needs);
  if (needs.scratch > 0) total_.scratch = start.scratch + needs.scratch;
  if (needs.saved > 0) total_.saved = start.saved + needs.saved;
  if (needs.state > 0) total_.state = start.state + needs.state;
  if (needs.packed > 0) total_.packed = start.packed + needs.packed;
  return static_cast<int>(sizes_.size()) - 1;
}

Workspace WorkspaceParts::part(const Workspace& whole, int number) const {
  const Needs& offset = offsets_[static_cast<size_t>(number)];
  const Needs& size = sizes_[static_cast<size_t>(number)];
  return {cut(whole.scratch, offset.scratch, size.scratch),
          cut(whole.saved, offset.saved, size.saved), cut(whole.state, offset.state, size.state),
          cut(whole.packed, offset.packed, size.packed)};
}

}  // namespace crema
