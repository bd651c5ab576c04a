// Permute (SSD) and Transpose (OCR forks): top axis i is bottom axis order[i]. Permute appends the
// axes that are not listed; Transpose lists them all.
#include <algorithm>

#include "layers/permutation.h"

namespace crema {
namespace {

/// y = x with its axes in the given order.
class AxisOrderLayer : public PermutationLayer {
 public:
  using PermutationLayer::PermutationLayer;

 protected:
  /// field: for messages. Negative axes count from the end.
  Shapes infer_order(const Shape& x, const std::vector<int64_t>& written, const char* field) {
    std::vector<int> order;
    for (const int64_t axis : written) {
      require(-x.axes() <= axis && axis < x.axes(), field, ": axis ", axis, " does not exist in ",
              bottom_text(param_, 0), " of shape ", x);
      const int place = x.canonical(static_cast<int>(axis));
      require(std::find(order.begin(), order.end(), place) == order.end(), field, ": axis ", axis,
              " is listed twice");
      order.push_back(place);
    }
    for (int axis = 0; axis < x.axes(); ++axis) {
      if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
    }
    Shape top;
    begin_axes();
    for (const int axis : order) {
      top.push_back(x[axis]);
      add_axis(x[axis], x.count(axis + 1));
    }
    return {top};
  }
};

class PermuteLayer : public AxisOrderLayer {
 public:
  using AxisOrderLayer::AxisOrderLayer;
  Shapes infer(const Shapes& bottom) override {
    const auto& order = param_.permute_param().order();
    return infer_order(bottom[0], {order.begin(), order.end()}, "order");
  }
};

class TransposeLayer : public AxisOrderLayer {
 public:
  using AxisOrderLayer::AxisOrderLayer;
  Shapes infer(const Shapes& bottom) override {
    const auto& dim = param_.transpose_param().dim();
    require(dim.size() == bottom[0].axes(), "dim: lists ", dim.size(), " axes, but ",
            bottom_text(param_, 0), " of shape ", bottom[0], " has ", bottom[0].axes());
    return infer_order(bottom[0], {dim.begin(), dim.end()}, "dim");
  }
};

REGISTER_LAYER("Permute", PermuteLayer)
REGISTER_LAYER("Transpose", TransposeLayer)

}  // namespace
}  // namespace crema
