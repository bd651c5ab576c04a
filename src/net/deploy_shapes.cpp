// What data layers hand out: from their sources where those are there, else from crops and sizes
// that are written.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "feed/augmentation.h"
#include "feed/feed.h"
#include "feed/picture_resizing.h"
#include "io/fork_layers.h"
#include "net/deploy.h"
#include "net/filter.h"
#include "net/graph.h"

namespace crema {
namespace {

int64_t batch_size_of(const LayerParameter& layer) {
  if (layer.has_image_data_param()) return layer.image_data_param().batch_size();
  if (layer.has_hdf5_data_param()) return layer.hdf5_data_param().batch_size();
  if (layer.has_window_data_param()) return layer.window_data_param().batch_size();
  if (layer.has_memory_data_param()) return layer.memory_data_param().batch_size();
  return std::max<int64_t>(1, layer.data_param().batch_size());
}

/// C,H,W as far as crop_size, colour fields and mean values tell; nothing without a crop.
std::optional<Shape> guessed_picture(const LayerParameter& layer) {
  const TransformationParameter& transform = layer.transform_param();
  const int64_t channels = transform.force_gray() || (layer.type() == "ImageData" &&
                                                      !layer.image_data_param().is_color())
                               ? 1
                               : 3;
  const CropSize crop = crop_size_of(transform);
  if (crop.height > 0) return Shape{channels, crop.height, crop.width};
  if (transform.has_resize_param() && has_one_size(transform.resize_param())) {
    return Shape{channels, transform.resize_param().height(), transform.resize_param().width()};
  }
  const ImageDataParameter& image = layer.image_data_param();
  if (image.new_height() > 0) return Shape{channels, image.new_height(), image.new_width()};
  return std::nullopt;
}

}  // namespace

bool is_data_layer(const LayerParameter& layer) {
  static const std::set<std::string> types = {"Data",       "ImageData",  "HDF5Data",
                                              "WindowData", "MemoryData", "AnnotatedData"};
  const bool is_of_fork = !layer.type().empty() && layer.bottom().empty() && !layer.top().empty() &&
                          layer_registry().find(layer.type()) == nullptr;
  return types.count(layer.type()) > 0 || is_of_fork;
}

Shapes shapes_of_data_layer(const LayerParameter& layer, int64_t batch,
                            std::vector<std::string>* notes) {
  if (layer.type() == "MemoryData") {
    const MemoryDataParameter& param = layer.memory_data_param();
    return {Shape{batch, param.channels(), param.height(), param.width()}, Shape{batch}};
  }
  std::string reason;
  if (layer_registry().find(layer.type()) == nullptr) {
    const std::string fork = fork_of_layer(layer.type());
    reason = str("layers of type ", layer.type(), " are not built in",
                 fork.empty() ? "" : " (a layer of " + fork + ')');
  } else {
    try {
      Shapes shapes =
          make_feed(layer, {.phase = TEST, .seed = 0, .layer_name = layer.name()})->shapes();
      for (Shape& shape : shapes) shape[0] = batch;
      return shapes;
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  const std::optional<Shape> picture = guessed_picture(layer);
  require(
      picture.has_value(), reason,
      "; without the records the input's size is not known: --input_shape=1,3,224,224 gives it");
  notes->push_back(
      str("layer \"", layer.name(), "\": ", reason, "; pictures of ", *picture, " are assumed"));
  Shapes shapes{Shape{batch}};
  for (const int64_t dim : *picture) shapes[0].push_back(dim);
  const bool has_boxes = layer.type() == "AnnotatedData";  // one in each picture is assumed
  const Shape labels = has_boxes ? Shape{1, 1, batch, 8} : Shape{batch};
  while (static_cast<int>(shapes.size()) < layer.top_size()) shapes.push_back(labels);
  return shapes;
}

NetParameter with_inputs(const NetParameter& net, const std::string& file,
                         std::vector<std::string>* notes) {
  NetParameter out = net;
  upgrade_and_filter(out, file);
  for (LayerParameter& layer : *out.mutable_layer()) {
    if (!is_data_layer(layer)) continue;
    Shapes shapes;
    try {
      shapes = shapes_of_data_layer(layer, batch_size_of(layer), notes);
    } catch (const Error& error) {
      throw error.at(place_of(layer, file));
    }
    LayerParameter made;
    made.set_name(layer.name());
    made.set_type("Input");
    made.set_source_location(layer.source_location());
    *made.mutable_top() = layer.top();
    for (const Shape& shape : shapes) {
      BlobShape* out_shape = made.mutable_input_param()->add_shape();
      for (const int64_t dim : shape) out_shape->add_dim(dim);
    }
    layer = made;
  }
  return out;
}

}  // namespace crema
