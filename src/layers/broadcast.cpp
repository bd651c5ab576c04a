// Checks of the axes that Scale and Bias work along.
#include "layers/broadcast.h"

namespace crema {

Broadcast read_broadcast(const Shape& bottom, int axis, int num_axes) {
  require(-bottom.axes() <= axis && axis < bottom.axes(), "axis: ", axis,
          " does not exist in the bottom of shape ", bottom);
  require(num_axes >= -1, "num_axes: must be -1 (to the last axis) or more, not ", num_axes);
  const int first = bottom.canonical(axis);
  require(num_axes <= bottom.axes() - first, "num_axes: ", num_axes, " axes from axis ", first,
          " on reach beyond the bottom of shape ", bottom);
  const Shape shape = bottom.slice(first, num_axes == -1 ? bottom.axes() : first + num_axes);
  return {first, shape, shape.count()};
}

Broadcast match_broadcast(const LayerParameter& param, const Shapes& bottom, int axis) {
  const Shape& small = bottom[1];
  if (small.axes() == 0) return {0, small, 1};
  const Shape& large = bottom[0];
  require(-large.axes() <= axis && axis < large.axes(), "axis: ", axis,
          " does not exist in the bottom of shape ", large);
  const int first = large.canonical(axis);
  const bool fits =
      first + small.axes() <= large.axes() && large.slice(first, first + small.axes()) == small;
  require(fits, bottom_text(param, 1), " of shape ", small, " must have the sizes of ",
          bottom_text(param, 0), " of shape ", large, " from axis ", first, " on");
  return {first, small, small.count()};
}

}  // namespace crema
