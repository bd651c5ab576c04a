// Tile: the bottom repeated `tiles` times along axis; its gradient is the sum over the repetitions.
#include "layers/axis_view.h"
#include "layers/checks.h"

namespace crema {
namespace {

class TileLayer : public Layer {
 public:
  using Layer::Layer;

  Shapes infer(const Shapes& bottom) override {
    const TileParameter& p = param_.tile_param();
    axis_ = bottom[0].canonical(p.axis());
    require(p.has_tiles(), "tiles: missing");
    require(p.tiles() >= 1, "tiles: must be at least 1, not ", p.tiles());
    Shape top = bottom[0];
    top[axis_] *= p.tiles();
    require_countable("top", top);
    return {top};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.any_layout = traits.accumulates = true;
    traits.tops_alias_bottom = param_.tile_param().tiles() == 1;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    return traits;
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    if (top[0].data == bottom[0].data) return;
    for (int i = 0; i < param_.tile_param().tiles(); ++i) {
      copy_to_range(ops, bottom[0], {top[0], Write::overwrite}, i * bottom[0].shape()[axis_],
                    axis_);
    }
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    Grad dx = args.dbottom[0];
    if (!dx || dx.t.data == args.dtop[0].data) return;
    for (int i = 0; i < param_.tile_param().tiles(); ++i) {
      copy_from_range(ops, args.dtop[0], i * dx.t.shape()[axis_], axis_, dx);
      dx.how = Write::accumulate;
    }
  }

 private:
  int axis_ = 1;
};

REGISTER_LAYER("Tile", TileLayer)

}  // namespace
}  // namespace crema
