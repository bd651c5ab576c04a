// ShuffleChannel (Zhang et al., "ShuffleNet", 2018): the channels (axis 1), seen as a matrix of
// group rows, are transposed: y[:, j * group + i] = x[:, i * (C / group) + j].
#include "layers/permutation.h"

namespace crema {
namespace {

class ShuffleChannelLayer : public PermutationLayer {
 public:
  using PermutationLayer::PermutationLayer;

  Shapes infer(const Shapes& bottom) override {
    const Shape& x = bottom[0];
    const int64_t group = param_.shuffle_channel_param().group();
    require(x.axes() >= 2, bottom_text(param_, 0), " of shape ", x, " needs a channel axis");
    require(group >= 1 && x[1] % group == 0, "group: ", group, " must divide the ", x[1],
            " channels of ", bottom_text(param_, 0));
    const int64_t inner = x.count(2), columns = x[1] / group;
    begin_axes();
    add_axis(x[0], x.count(1));
    add_axis(columns, inner);
    add_axis(group, columns * inner);
    add_axis(inner, 1);
    return {x};
  }
};

REGISTER_LAYER("ShuffleChannel", ShuffleChannelLayer)

}  // namespace
}  // namespace crema
