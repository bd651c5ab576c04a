// Which feed a layer type has.
#include "feed/feed.h"

#include <glog/logging.h>

#include "base/error.h"
#include "base/philox.h"
#include "feed/annotated_loader.h"
#include "feed/hdf5_feed.h"
#include "feed/loaders.h"
#include "feed/window_loader.h"

namespace crema {
namespace {

constexpr uint32_t kMostBatches = 10000;  // made ahead

int checked_batch_size(const char* message, uint32_t batch_size) {
  require(batch_size > 0, message, ": batch_size must be positive");
  require(batch_size <= INT32_MAX, message, ": batch_size is too large");
  return static_cast<int>(batch_size);
}

/// transform_param, with what older files say in the data layer's own fields.
/// BVLC: reads those from V1 layers only.
template <class Param>
TransformationParameter transform_of(const LayerParameter& layer, const Param& old) {
  TransformationParameter transform = layer.transform_param();
  if (old.has_scale() && !transform.has_scale()) transform.set_scale(old.scale());
  if (old.has_mirror() && !transform.has_mirror()) transform.set_mirror(old.mirror());
  if (old.has_crop_size() && !transform.has_crop_size()) transform.set_crop_size(old.crop_size());
  const bool has_mean = transform.has_mean_file() || transform.mean_value_size() > 0;
  if (old.has_mean_file() && !has_mean) transform.set_mean_file(old.mean_file());
  return transform;
}

/// Fields that only AnnotatedData reads are no mistake, but do nothing.
void warn_of_unread(const LayerParameter& layer) {
  const TransformationParameter& t = layer.transform_param();
  if (t.has_emit_constraint()) {
    LOG(WARNING) << "layer \"" << layer.name() << "\" (" << layer.type()
                 << "): emit_constraint is about boxes and read by AnnotatedData only";
  }
}

}  // namespace

std::unique_ptr<Feed> make_feed(const LayerParameter& layer, const FeedContext& context) {
  if (layer.type() == "HDF5Data") return std::make_unique<Hdf5Feed>(layer, context);
  LoaderOptions options{.phase = context.phase,
                        .key = mix_key(context.seed, hash_name(context.layer_name.c_str())),
                        .tops = layer.top_size(),
                        .rank = context.rank,
                        .ranks = context.ranks,
                        .transform = {}};
  PrefetchFeed::Options pipeline;
  pipeline.threads /= context.ranks;  // which share this machine; at least one is left
  const uint32_t prefetch = layer.data_param().prefetch();
  require(prefetch <= kMostBatches, "data_param: prefetch: ", prefetch, " batches are too many, ",
          kMostBatches, " are possible");
  pipeline.prefetch = static_cast<int>(prefetch);
  if (layer.type() == "AnnotatedData") {
    const DataParameter& param = layer.data_param();
    options.transform = transform_of(layer, param);
    pipeline.batch_size = checked_batch_size("data_param", param.batch_size());
    return std::make_unique<PrefetchFeed>(make_annotated_loader(layer, options), pipeline);
  }
  warn_of_unread(layer);
  if (layer.type() == "Data") {
    const DataParameter& param = layer.data_param();
    options.transform = transform_of(layer, param);
    pipeline.batch_size = checked_batch_size("data_param", param.batch_size());
    return std::make_unique<PrefetchFeed>(make_database_loader(param, options), pipeline);
  }
  if (layer.type() == "ImageData") {
    const ImageDataParameter& param = layer.image_data_param();
    options.transform = transform_of(layer, param);
    pipeline.batch_size = checked_batch_size("image_data_param", param.batch_size());
    return std::make_unique<PrefetchFeed>(make_list_loader(param, options), pipeline);
  }
  if (layer.type() == "WindowData") {
    const WindowDataParameter& param = layer.window_data_param();
    options.transform = transform_of(layer, param);
    pipeline.batch_size = checked_batch_size("window_data_param", param.batch_size());
    return std::make_unique<PrefetchFeed>(make_window_loader(param, options), pipeline);
  }
  fail("layers of type ", layer.type(), " have no feed");
}

}  // namespace crema
