// What the layers that read labels, and those with written shapes, share.
#pragma once

#include <string>

#include "layers/common.h"
#include "layers/layer.h"

namespace crema {

/// bottom "NAME": for messages.
inline std::string bottom_text(const LayerParameter& param, int index) {
  return str("bottom \"", index < param.bottom_size() ? param.bottom(index) : "?", '"');
}

/// A shape as a file gives it. Throws Error unless every size is at least 1 and all are countable.
inline Shape shape_of(const BlobShape& proto) {
  Shape shape;
  for (int64_t dim : proto.dim()) {
    require(dim >= 1, "shape: every dim must be at least 1, not ", dim);
    shape.push_back(dim);
  }
  require_countable("shape", shape);
  return shape;
}

/// Throws Error unless bottom `index` holds one label for each of outer * inner positions.
inline void require_labels(const LayerParameter& param, int index, const Shape& labels,
                           int64_t outer, int64_t inner) {
  require(labels.count() == outer * inner, bottom_text(param, index), " must hold ", outer * inner,
          " labels (", outer, " before the class axis x ", inner, " behind it), but has shape ",
          labels);
}

/// For a bottom of labels or indices, to be called in plan(). Throws Error when a gradient is
/// wanted for it.
inline void refuse_gradient(const LayerParameter& param, const PlanContext& context, int index) {
  const auto place = static_cast<size_t>(index);
  require(place >= context.need_dx.size() || !context.need_dx[place], bottom_text(param, index),
          " takes no gradient, but what makes it learns: propagate_down: false for it stops that");
}

/// How many labels one sample has: the positions of all axes but the first and the class axis.
inline int64_t labels_per_sample(const Shape& scores, int axis) {
  return axis == 0 ? scores.count(1) : scores.count(1, axis) * scores.count(axis + 1);
}

/// The sentence for a label out of range; per_sample: labels that belong to one sample.
inline std::string explain_label(const Fault& fault, int64_t classes, int64_t per_sample) {
  const std::string place =
      per_sample > 1 ? str(" (position ", fault.index % per_sample, ")") : std::string();
  return str("label ", fault.value, " of sample ", fault.index / per_sample, place,
             " must be in 0..", classes - 1);
}

/// True when no gradient comes down to the loss itself: the bottoms' gradients are then 0.
inline bool clear_without_loss(Ops& ops, const BackwardArgs& args) {
  if (args.dtop[0]) return false;
  for (const Grad& dx : args.dbottom) no_gradient(ops, dx);
  return true;
}

}  // namespace crema
