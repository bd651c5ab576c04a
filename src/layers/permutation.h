// What Permute, Transpose, Reverse, ShuffleChannel and Reorg share: the top holds the bottom's
// values in another order, and the gradient goes back the same way.
#pragma once

#include "layers/checks.h"
#include "layers/common.h"
#include "ops/kernels/permute.h"

namespace crema {

class PermutationLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.accumulates = true;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    move(ops, bottom[0], {top[0], Write::overwrite}, scatters_);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    if (args.dbottom[0]) move(ops, args.dtop[0], args.dbottom[0], !scatters_);
  }

 protected:
  /// Starts a new order: the axes of the blob that is walked follow, outermost first.
  void begin_axes() {
    place_ = {};
    scatters_ = false;
  }
  /// size indices of the walked blob, each `step` elements further in the other one (below 0:
  /// backwards, from the end).
  void add_axis(int64_t size, int64_t step) {
    if (step < 0) place_.start -= (size - 1) * step;
    if (size == 1) return;
    const int last = place_.axes - 1;
    if (last >= 0 && place_.step[last] == step * size) {
      place_.size[last] *= size;
      place_.step[last] = step;
      return;
    }
    require(place_.axes < 8, "more than 8 axes change their places");
    place_.size[place_.axes] = size;
    place_.step[place_.axes++] = step;
  }
  /// The walked blob is the bottom, not the top.
  void walk_bottom() { scatters_ = true; }

 private:
  void move(Ops& ops, const CTensor& from, const Grad& to, bool scatters) const {
    const bool accumulate = to.how == Write::accumulate;
    if (scatters) {
      run(ops, PermuteScatter{from.f32(), to.t.f32(), place_, accumulate}, from.count());
    } else {
      run(ops, PermuteGather{from.f32(), to.t.f32(), place_, accumulate}, from.count());
    }
  }

  CropBlock place_;
  bool scatters_ = false;
};

}  // namespace crema
