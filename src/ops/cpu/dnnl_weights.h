// Weights and their gradients on the way between plain order and the order, or type, that a
// primitive of oneDNN wants.
#pragma once

#include "ops/cpu/cpu_ops.h"

namespace crema {

/// Weights of one direction: packed once per update, or read in place.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(const DnnlContext& context, const dnnl::memory::desc& plain,
                const dnnl::memory::desc& packed) {
    if (packed == plain) return;
    pack_ = make_reorder(context, plain, packed, false);
    bytes_ = packed.get_size();
  }
  size_t bytes() const { return bytes_; }
  /// memory: of bytes().
  void bind(float* memory) {
    memory_ = memory;
    if (pack_) pack_.set(DNNL_ARG_TO, memory);
  }
  void pack(const float* w) {
    if (!pack_) return;
    pack_.set(DNNL_ARG_FROM, w);
    pack_.run();
  }
  const float* pick(const float* w) const { return pack_ ? memory_ : w; }

 private:
  DnnlCall pack_;
  size_t bytes_ = 0;
  float* memory_ = nullptr;
};

/// The way home of a weight gradient.
class UnpackedGradient {
 public:
  UnpackedGradient() = default;
  UnpackedGradient(const DnnlContext& context, const dnnl::memory::desc& packed,
                   const dnnl::memory::desc& plain) {
    if (packed == plain) return;
    overwrite_ = make_reorder(context, packed, plain, false);
    add_ = make_reorder(context, packed, plain, true);
  }
  /// Whether the primitive may write dw itself.
  bool is_direct(const Grad& dw) const { return !overwrite_ && dw && dw.how == Write::overwrite; }
  /// from: what the primitive wrote, where it did not write dw itself.
  void bring_home(const Isa& isa, const float* from, const Grad& dw) {
    if (!overwrite_) return add_loop(isa, from, dw.t.f32(), dw.t.count());
    DnnlCall& call = dw.how == Write::accumulate ? add_ : overwrite_;
    call.set(DNNL_ARG_FROM, from);
    call.set(DNNL_ARG_TO, dw.t.data);
    call.run();
  }

 private:
  DnnlCall overwrite_, add_;
};

}  // namespace crema
