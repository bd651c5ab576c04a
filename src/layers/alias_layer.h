// The layers whose tops hold bottom 0's values under another shape or name. The net lets their
// memory be bottom 0's; where it does not, this copies.
#pragma once

#include "layers/common.h"

namespace crema {

class AliasLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.tops_alias_bottom = traits.accumulates = true;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    for (const Tensor& y : top) {
      if (y.data != bottom[0].data) ops.convert(bottom[0], like(y, bottom[0]));
    }
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    const Grad& dx = args.dbottom[0];
    if (!dx) return;
    bool adds = dx.how == Write::accumulate;
    for (const CTensor& dy : args.dtop) adds |= dy.data == dx.t.data;
    for (const CTensor& dy : args.dtop) {
      if (!dy || dy.data == dx.t.data) continue;
      const CTensor part{dy.data, dx.t.desc};
      adds ? ops.add(part, dx.t) : ops.convert(part, dx.t);
      adds = true;
    }
    if (!adds) no_gradient(ops, dx);
  }

 private:
  static Tensor like(const Tensor& memory, const CTensor& shape) {
    return {memory.data, shape.desc};
  }
};

}  // namespace crema
