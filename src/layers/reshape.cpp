// Reshape: the axes [axis, axis + num_axes) are replaced by shape; in it 0 copies the bottom's size
// at the same place and -1 (once) stands for what is left.
#include "layers/alias_layer.h"

namespace crema {
namespace {

class ReshapeLayer : public AliasLayer {
 public:
  using AliasLayer::AliasLayer;

  Shapes infer(const Shapes& bottom) override {
    const ReshapeParameter& p = param_.reshape_param();
    const Shape& x = bottom[0];
    const int axes = x.axes();
    require(p.axis() >= -axes - 1 && p.axis() <= axes, "axis: ", p.axis(), " must be in ",
            -axes - 1, "..", axes, " for a bottom of shape ", x);
    const int first = p.axis() >= 0 ? p.axis() : axes + 1 + p.axis();
    require(p.num_axes() >= -1, "num_axes: must be at least 0, or -1 for all that follow, not ",
            p.num_axes());
    require(p.num_axes() <= axes - first, "num_axes: ", p.num_axes(), " axes from axis ", first,
            " on are more than a bottom of shape ", x, " has");
    const int end = p.num_axes() == -1 ? axes : first + p.num_axes();

    Shape top = x.slice(0, first);
    int inferred = -1;
    for (int i = 0; i < p.shape().dim_size(); ++i) {
      if (p.shape().dim(i) == -1) {
        require(inferred < 0, "shape: -1 may stand only once");
        inferred = top.axes();
      }
      top.push_back(size_of_dim(x, first, i));
    }
    for (int i = end; i < axes; ++i) top.push_back(x[i]);
    if (inferred >= 0) infer_dim(x, inferred, top);
    require(top.count() == x.count(), "shape: ", top, " holds ", top.count(),
            " values, the bottom of shape ", x, " has ", x.count());
    return {top};
  }

 private:
  /// Size of dim i of the written shape; 1 for the one to be inferred.
  int64_t size_of_dim(const Shape& x, int first, int i) const {
    const int64_t dim = param_.reshape_param().shape().dim(i);
    require(dim >= -1, "shape: a dim must be -1, 0 or more, not ", dim);
    if (dim != 0) return dim == -1 ? 1 : dim;
    require(first + i < x.axes(), "shape: dim 0 at place ", i, " copies axis ", first + i,
            ", which a bottom of shape ", x, " does not have");
    return x[first + i];
  }

  static void infer_dim(const Shape& x, int axis, Shape& top) {
    const int64_t others = top.count();
    require(others > 0 && x.count() % others == 0, "shape: the ", x.count(),
            " values of a bottom of shape ", x, " cannot be divided by the other sizes' product, ",
            others);
    top[axis] = x.count() / others;
  }
};

REGISTER_LAYER("Reshape", ReshapeLayer)

}  // namespace
}  // namespace crema
