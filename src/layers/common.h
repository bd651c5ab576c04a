// What several layers share: rules that fields and shapes must keep, declaring parameters, cutting
// a workspace.
#pragma once

#include <vector>

#include "layers/layer.h"

namespace crema {

/// Largest value a window field (kernel, stride, pad, dilation) may have: sums and products of two
/// stay within 64 bits.
constexpr int64_t kMaxWindow = int64_t{1} << 30;

/// Throws Error unless shape has at most 2^31 - 1 elements, counted without overflow. what: "top",
/// "weights", ...
void require_countable(const char* what, const Shape& shape);

/// num_output as written. Throws Error when it is missing, 0 or beyond 2^31 - 1.
int64_t require_outputs(bool is_written, uint32_t num_output);

/// A constant filler.
FillerParameter constant_filler(float value);

/// Declares a parameter in infer, which may run again: storage that the net gave stays.
void declare(Param& param, const Shape& shape, const FillerParameter& filler,
             bool learnable = true);

/// For a blob that no gradient reaches: zeroes the gradient where it is to be overwritten.
void no_gradient(Ops& ops, const Grad& gradient);

/// y = act(ca * a + cb * b) for blobs of one shape and type; act is none or relu. y may be a or b.
struct SumCoefficients {
  float a = 1, b = 1;
};
void weighted_sum(Ops& ops, const CTensor& a, const CTensor& b, const Tensor& y,
                  const SumCoefficients& coefficients, const Act& act);

/// dy as the gradient of what was added to a layer's top (Layer::absorb_sum); nothing where it is
/// not wanted or lies in dy already. After the layer's own gradient: both may be of one blob.
void residual_backward(Ops& ops, const CTensor& dy, const Grad& dresidual);

/// Parameter i's gradient, if it is wanted; after the first contribution of a backward pass, one to
/// add to.
Grad param_gradient(const BackwardArgs& args, size_t i, bool is_first = true);

/// The same memory with another shape (nchw) of the same count.
CTensor reshaped(const CTensor& tensor, const Shape& shape);
Tensor reshaped(const Tensor& tensor, const Shape& shape);
Grad reshaped(const Grad& gradient, const Shape& shape);

/// Workspace memory as a tensor of that desc; empty when the memory is.
Tensor tensor_of(const Tensor& memory, const TensorDesc& desc);
/// As tensor_of, of f32 elements.
Tensor f32_of(const Tensor& memory, const TensorDesc& desc);

/// The needs of a layer's parts (plans, own buffers) behind one another, each at a multiple of 64
/// bytes.
class WorkspaceParts {
 public:
  /// Forgets all parts: at the start of plan().
  void clear();
  /// Adds a part and returns its number.
  int add(const Needs& needs);
  const Needs& total() const { return total_; }
  Workspace part(const Workspace& whole, int number) const;

 private:
  std::vector<Needs> offsets_, sizes_;
  Needs total_;
};

}  // namespace crema
