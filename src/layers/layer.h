// A layer: shapes in, shapes out, parameters, and its computation in calls of Ops. It never asks
// for the device, the mode or whether it was fused elsewhere, and allocates nothing in forward or
// backward. Each default here is the safe answer: correct before fast.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/registry.h"
#include "crema.pb.h"
#include "ops/ops.h"

namespace crema {

class Feed;

/// A parameter as its layer declares it in infer(); the net stores, fills, shares, updates and
/// saves it.
struct Param {
  Shape shape;
  FillerParameter filler;  // default: constant 0
  bool learnable = true;   // false: statistics that forward itself updates; no gradient, never
                           // touched by the solver
  Tensor value;            // set by the net before plan(); always nchw order
};

/// What a layer is made with, beside its LayerParameter.
struct LayerContext {
  Phase phase = TEST;
  uint64_t seed = 0;  // of the run; a layer's own draws mix in its name
  int rank = 0, ranks = 1;
  int index = 0;  // of the layer in its net, for faults
};

/// How many bottoms and tops a layer takes; -1: no limit.
struct Arity {
  int min_bottoms = 1, max_bottoms = 1, min_tops = 1, max_tops = 1;
};

/// Whose blobs are pieces of one other, one behind another along an axis: a Concat's bottoms of its
/// top, a Slice's tops of its bottom.
enum class Pieces : uint8_t { none, bottoms, tops };

/// Whether a layer's blobs may be 16-bit floats, data and gradients. none: all are f32 (labels,
/// losses, statistics). follows: where its neighbours' are. gains: worth converting for.
enum class Low : uint8_t { none, follows, gains };

/// What the passes may do with a layer. Bit i of a mask is blob i.
struct LayerTraits {
  /// Bottoms and tops with three or more axes may all be nhwc (the same for all of them); else they
  /// are nchw.
  bool any_layout = false;
  /// Which blobs' data backward reads: the others' memory is free for reuse after forward.
  uint64_t backward_reads_bottoms = ~uint64_t{0}, backward_reads_tops = ~uint64_t{0};
  /// Tops whose memory is that of bottom 0 (Reshape, Flatten, Split, Dropout in TEST): forward and
  /// backward do nothing for them. Their gradients are bottom 0's likewise.
  bool tops_alias_bottom = false;
  /// forward is right when top 0 is bottom 0's memory, and backward when bottom 0's gradient is top
  /// 0's.
  bool can_overwrite_bottom = false;
  /// backward honours Write::accumulate for bottoms; else the net gives a temporary and adds.
  /// Parameter gradients must always be accumulated by the layer itself.
  bool accumulates = false;
  bool has_backward = true;     // false: Accuracy, ArgMax: nothing flows through it
  bool repeatable = true;       // forward_again gives the same tops and changes nothing else
  bool host_only = false;       // runs on the host: the plan downloads and uploads around it
  bool changes_params = false;  // forward writes its own parameters (statistics)
  /// forward uploads or downloads, or makes other calls from time to time: it cannot be recorded.
  /// host_only layers cannot either.
  bool calls_host = false;
  /// Where the pieces lie inside the whole, forward and backward need not copy them: both compare
  /// addresses.
  Pieces pieces = Pieces::none;
  int pieces_axis = 0;
  /// Where it is not none, net/precision asks takes_low() whether the backend can.
  Low low = Low::none;
};

/// What plan() is told, after every pass but the memory plan.
struct PlanContext {
  std::span<const TensorDesc> bottom, top;
  std::span<const uint8_t> need_dx, need_dw;  // per bottom, per parameter
  bool train = false;                         // a backward will follow
  bool recompute = false;                     // forward_again may be called
};

/// What backward() is given. Where one blob is several bottoms, the first's gradient overwrites and
/// the others add: write dbottom in order. dtop has an empty tensor where a top has no gradient
/// (nothing depends on it).
struct BackwardArgs {
  CTensors bottom, top, dtop;
  Grads dbottom, dparams;
};

class Layer {
 public:
  Layer(const LayerParameter& param, const LayerContext& context)
      : param_(param), context_(context) {}
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  virtual Arity arity() const { return {}; }
  /// Checks the fields against the bottoms' shapes, declares params_, returns the tops' shapes.
  /// Pure: no Ops, no storage; may be called again with other shapes. Throws Error with the rule
  /// that was broken.
  virtual Shapes infer(const Shapes& bottom) = 0;
  /// Valid after infer.
  virtual LayerTraits traits() const { return {}; }
  std::span<Param> params() { return params_; }

  /// A loss layer has weight 1 for its first top where none is written, and makes up for tops that
  /// are not written.
  virtual bool is_loss() const { return false; }
  /// Whether force_backward reaches bottom i (false for labels).
  virtual bool allow_force_backward(int /*bottom*/) const { return true; }
  /// The layout in which this layer runs fastest, where it has an opinion (convolution asks
  /// ops.preferred).
  virtual std::optional<Layout> preferred_layout(const Ops&, const Shapes& /*bottom*/,
                                                 const Shapes& /*top*/) const {
    return std::nullopt;
  }
  /// Whether ops computes this layer where its bottoms and tops are the 16-bit ones of context.
  virtual bool takes_low(const Ops&, const PlanContext&) const { return false; }
  /// Of a layer without bottoms: forward writes its tops in either layout, as they are asked for.
  virtual bool fills_any_layout(const Ops&) const { return false; }
  /// The activation that this layer is (ReLU, ReLU6, ELU), for net/fuse to offer to the layer
  /// before it.
  virtual std::optional<Act> as_activation() const { return std::nullopt; }
  /// net/fuse offers the activation that follows; true: applied to top 0 from now on, and masked in
  /// backward.
  virtual bool absorb(const Act&) { return false; }
  /// Whether top 0 is the plain sum of two bottoms.
  virtual bool is_sum() const { return false; }
  /// net/fuse offers a sum of top 0 and another blob; true: from now on that blob is the last
  /// bottom, and is added to top 0 before an absorbed activation.
  virtual bool absorb_sum() { return false; }
  /// The learnable scale and, where there is one, bias along axis 1 that this layer applies to its
  /// only bottom (Scale); empty for other layers.
  virtual std::span<Param> channel_affine() { return {}; }
  /// net/fuse offers the channel_affine() of the layer that follows; true: applied to top 0 from
  /// now on, and backward is given their gradients behind those of its own parameters.
  virtual bool absorb_affine(std::span<Param>) { return false; }
  /// Whether this layer is y = scale[c] * x + shift[c] with numbers that only change with
  /// parameters (BatchNorm in TEST, Scale).
  virtual bool is_channel_map() const { return false; }
  /// Writes the numbers of is_channel_map().
  virtual void channel_map(Ops&, Tensor /*scale*/, Tensor /*shift*/) {}
  /// Where no backward follows, net/fuse offers the channel map that follows; true: folded into the
  /// weights from now on.
  virtual bool absorb_channel_map(Layer&) { return false; }

  /// Makes plans. Called once all passes have decided; may be called again for other shapes.
  virtual Needs plan(Ops&, const PlanContext&) { return {}; }
  virtual void bind(const Workspace&) {}
  /// After an update, a load or a share: pack weights, refold.
  virtual void params_changed(Ops&) {}
  virtual void forward(Ops&, CTensors bottom, Tensors top) = 0;
  virtual void backward(Ops&, const BackwardArgs&) {}
  /// Computes the tops of the last forward a second time, bit for bit, between it and its backward:
  /// with recompute, where the first ones were dropped. Only for layers whose traits say
  /// `repeatable`.
  virtual void forward_again(Ops& ops, CTensors bottom, Tensors top) { forward(ops, bottom, top); }

  /// The tops' shapes after a forward whose sizes depend on data (Filter), where infer gave upper
  /// bounds; the net then infers what follows again. Nothing for other layers.
  virtual std::optional<Shapes> shapes_after_forward() const { return std::nullopt; }

  /// The sentence for a fault that this layer's kernel wrote: what was found and what is allowed.
  virtual std::string explain(const Fault& fault) const { return str("bad value ", fault.value); }
  /// Which item of the batch the fault's index belongs to, so that its record can be named.
  virtual int64_t sample_of(const Fault& fault) const { return fault.index; }
  /// Where this layer's records come from, or nullptr.
  virtual Feed* feed() { return nullptr; }
  const LayerParameter& param() const { return param_; }
  Phase phase() const { return context_.phase; }
  /// What Fault::layer holds for this layer.
  int fault_index() const { return context_.index; }

 protected:
  /// The key of this layer's random draws for one purpose (see base/philox.h).
  uint64_t random_key(const char* purpose) const {
    return mix_key(mix_key(context_.seed, static_cast<uint64_t>(context_.rank)),
                   mix_key(hash_name(param_.name().c_str()), hash_name(purpose)));
  }

  LayerParameter param_;
  LayerContext context_;
  std::vector<Param> params_;
};

using LayerFactory =
    std::function<std::unique_ptr<Layer>(const LayerParameter&, const LayerContext&)>;
/// Every layer type by name.
Registry<LayerFactory>& layer_registry();
/// Throws Error with the nearest type's name when the type is unknown.
std::unique_ptr<Layer> make_layer(const LayerParameter& param, const LayerContext& context);

template <class L>
struct LayerRegistrar {
  explicit LayerRegistrar(const char* type) {
    layer_registry().add(type, [](const LayerParameter& param, const LayerContext& context) {
      return std::unique_ptr<Layer>(std::make_unique<L>(param, context));
    });
  }
};
#define REGISTER_LAYER(type, Class) const LayerRegistrar<Class> registrar_##Class{type};

}  // namespace crema
