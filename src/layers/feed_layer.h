// What Data, ImageData and HDF5Data share: tops filled from a Feed on the host.
#pragma once

#include <memory>

#include "feed/feed.h"
#include "layers/layer.h"

namespace crema {

class FeedLayer : public Layer {
 public:
  FeedLayer(const LayerParameter& param, const LayerContext& context, Arity arity)
      : Layer(param, context), arity_(arity) {}

  Arity arity() const override { return arity_; }

  /// Opens the source at the first call, and keeps it.
  Shapes infer(const Shapes&) override {
    if (!feed_) {
      feed_ = make_feed(param_, {.phase = context_.phase,
                                 .seed = context_.seed,
                                 .layer_name = param_.name(),
                                 .rank = context_.rank,
                                 .ranks = context_.ranks});
      pointers_.resize(static_cast<size_t>(param_.top_size()));
    }
    return feed_->shapes();
  }

  LayerTraits traits() const override {
    return {.has_backward = false, .repeatable = false, .host_only = true};
  }

  void forward(Ops&, CTensors, Tensors top) override {
    for (size_t i = 0; i < top.size(); ++i) pointers_[i] = top[i].f32();
    feed_->next(pointers_);
  }

  Feed* feed() override { return feed_.get(); }

 private:
  Arity arity_;
  std::unique_ptr<Feed> feed_;
  std::vector<float*> pointers_;
};

}  // namespace crema
