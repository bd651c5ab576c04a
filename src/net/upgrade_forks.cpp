// What forks wrote in fields of their own and Crema computes under another name: hole_h and hole_w
// (DeepLab), short_side (NVCaffe), class_weighting (SegNet), Crop without an offset in V1 syntax
// (the first FCN).
#include <glog/logging.h>

#include <map>
#include <vector>

#include "base/error.h"
#include "net/crop_offsets.h"
#include "net/graph.h"
#include "net/upgrade_steps.h"

namespace crema {
namespace {

bool move_holes(LayerParameter* layer) {
  if (!layer->convolution_param().has_hole_h() && !layer->convolution_param().has_hole_w()) {
    return false;
  }
  ConvolutionParameter& p = *layer->mutable_convolution_param();
  const uint32_t both = p.dilation_size() > 0 ? p.dilation(0) : 1;
  const uint32_t h = p.has_hole_h() ? p.hole_h() : both, w = p.has_hole_w() ? p.hole_w() : both;
  p.clear_hole_h();
  p.clear_hole_w();
  p.clear_dilation();
  p.add_dilation(h);
  p.add_dilation(w);
  return true;
}

bool move_short_side(LayerParameter* layer, const std::string& file) {
  const uint32_t side = layer->image_data_param().short_side();
  if (!layer->image_data_param().has_short_side()) return false;
  layer->mutable_image_data_param()->clear_short_side();
  if (side == 0) return false;
  require(!layer->transform_param().has_resize_param() &&
              layer->transform_param().img_rand_resize_lower() == 0 &&
              layer->image_data_param().new_height() == 0,
          place_of(*layer, file),
          ": short_side: stands beside another size for the picture; give one of them");
  ResizeParameter& resize = *layer->mutable_transform_param()->mutable_resize_param();
  resize.set_resize_mode(ResizeParameter::FIT_SMALL_SIZE);
  resize.set_height(side);
  resize.set_width(side);
  resize.add_interp_mode(ResizeParameter::LINEAR);
  return true;
}

/// SegNet reads its weights where weight_by_label_freqs is true; without weights it divides by how
/// often each label stands in the batch.
std::string move_class_weights(LayerParameter* layer) {
  const LossParameter& written = layer->loss_param();
  const bool counts = written.weight_by_label_freqs(),
             has_weights = !written.class_weighting().empty();
  if (!written.has_weight_by_label_freqs() && !has_weights) return "";
  LossParameter& loss = *layer->mutable_loss_param();
  if (counts && has_weights) *loss.mutable_class_weight() = loss.class_weighting();
  loss.clear_weight_by_label_freqs();
  loss.clear_class_weighting();
  if (counts == has_weights) return has_weights ? "class_weighting is taken as class_weight" : "";
  return counts ? "weight_by_label_freqs without class_weighting weighs all classes alike here"
                : "class_weighting is left out, for weight_by_label_freqs is not true";
}

void tell(const std::string& file, const std::string& what,
          const std::vector<std::string>& layers) {
  if (layers.empty()) return;
  LOG(WARNING) << file << ": " << what << " (layers: " << join(layers) << ")";
}

}  // namespace

void upgrade_forks(NetParameter& net, const std::string& file) {
  std::vector<std::string> holes, sides;
  std::map<std::string, std::vector<std::string>> weights;
  for (LayerParameter& layer : *net.mutable_layer()) {
    if (move_holes(&layer)) holes.push_back(layer.name());
    if (move_short_side(&layer, file)) sides.push_back(layer.name());
    const std::string told = move_class_weights(&layer);
    if (!told.empty()) weights[told].push_back(layer.name());
  }
  for (const auto& [what, layers] : weights) tell(file, what, layers);
  tell(file, "hole_h and hole_w are taken as dilation", holes);
  tell(file, "short_side is taken as resize_param { resize_mode: FIT_SMALL_SIZE }", sides);
}

void align_crops(NetParameter& net, const std::string& file) {
  std::vector<std::string> aligned;
  for (int i = 0; i < net.layer_size(); ++i) {
    LayerParameter& layer = *net.mutable_layer(i);
    if (layer.type() != "Crop" || layer.has_crop_param()) continue;
    const auto offsets = aligned_offsets(net, i);
    require(offsets && (*offsets)[0] >= 0 && (*offsets)[1] >= 0, place_of(layer, file),
            ": where bottom 0 is to be cut cannot be worked out: write crop_param { offset: ... }");
    for (const int64_t offset : *offsets) {
      layer.mutable_crop_param()->add_offset(static_cast<uint32_t>(offset));
    }
    aligned.push_back(str(layer.name(), " ", (*offsets)[0], " ", (*offsets)[1]));
  }
  tell(file, "CROP begins where its result lies on its second bottom", aligned);
}

}  // namespace crema
