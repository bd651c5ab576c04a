// What Data, ImageData and HDF5Data share: tops filled from a Feed on the host.
#pragma once

#include <memory>

#include "feed/feed.h"
#include "layers/byte_upload.h"
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

  Needs plan(Ops& ops, const PlanContext& context) override {
    staging_.clear();
    if (ops.shares_host_memory()) return {};
    if (!bytes_) bytes_ = ByteUpload::make(ops, *feed_);
    if (bytes_) return {.state = bytes_->state_bytes()};
    for (const TensorDesc& top : context.top) {
      staging_.push_back(ops.allocate(top.bytes(), Memory::pinned_host));
    }
    return {};
  }

  void bind(const Workspace& workspace) override {
    if (bytes_) bytes_->bind(workspace.state);
  }

  bool fills_any_layout(const Ops& ops) const override {
    return !ops.shares_host_memory() && feed_->byte_format().has_value();
  }

  /// Where the host cannot write tops, by way of pinned memory: a net waits for its loss before the
  /// next batch.
  void forward(Ops& ops, CTensors, Tensors top) override {
    if (bytes_) return bytes_->forward(ops, top);
    for (size_t i = 0; i < top.size(); ++i) {
      pointers_[i] = staging_.empty() ? top[i].f32() : static_cast<float*>(staging_[i].get());
    }
    feed_->next(pointers_);
    for (size_t i = 0; i < staging_.size(); ++i) ops.upload(staging_[i].get(), top[i]);
  }

  Feed* feed() override { return feed_.get(); }

 private:
  Arity arity_;
  std::unique_ptr<Feed> feed_;
  std::vector<float*> pointers_;
  std::vector<Buffer> staging_;        // per top, where the device's memory is not the host's
  std::unique_ptr<ByteUpload> bytes_;  // there too, where pictures are bytes
};

}  // namespace crema
