// V0 layers to V1 layers: one flat message holds the fields of all types, so each type takes those
// that are its own. A padding layer becomes the pad of the layers that read it.
#include <glog/logging.h>

#include <map>

#include "base/error.h"
#include "net/upgrade_steps.h"

namespace crema {
namespace {

using V0 = V0LayerParameter;
using V1 = V1LayerParameter;

const std::map<std::string, V1::LayerType>& types() {
  static const std::map<std::string, V1::LayerType> table = {
      {"accuracy", V1::ACCURACY},
      {"bnll", V1::BNLL},
      {"concat", V1::CONCAT},
      {"conv", V1::CONVOLUTION},
      {"data", V1::DATA},
      {"dropout", V1::DROPOUT},
      {"euclidean_loss", V1::EUCLIDEAN_LOSS},
      {"flatten", V1::FLATTEN},
      {"hdf5_data", V1::HDF5_DATA},
      {"hdf5_output", V1::HDF5_OUTPUT},
      {"im2col", V1::IM2COL},
      {"images", V1::IMAGE_DATA},
      {"infogain_loss", V1::INFOGAIN_LOSS},
      {"innerproduct", V1::INNER_PRODUCT},
      {"lrn", V1::LRN},
      {"multinomial_logistic_loss", V1::MULTINOMIAL_LOGISTIC_LOSS},
      {"pool", V1::POOLING},
      {"relu", V1::RELU},
      {"sigmoid", V1::SIGMOID},
      {"softmax", V1::SOFTMAX},
      {"softmax_loss", V1::SOFTMAX_LOSS},
      {"split", V1::SPLIT},
      {"tanh", V1::TANH},
      {"window_data", V1::WINDOW_DATA},
  };
  return table;
}

void take_convolution(const V0& old, ConvolutionParameter* param) {
  if (old.has_num_output()) param->set_num_output(old.num_output());
  if (old.has_biasterm()) param->set_bias_term(old.biasterm());
  if (old.has_weight_filler()) *param->mutable_weight_filler() = old.weight_filler();
  if (old.has_bias_filler()) *param->mutable_bias_filler() = old.bias_filler();
  if (old.has_pad()) param->add_pad(old.pad());
  if (old.has_kernelsize()) param->add_kernel_size(old.kernelsize());
  if (old.has_group()) param->set_group(old.group());
  if (old.has_stride()) param->add_stride(old.stride());
}

void take_inner_product(const V0& old, InnerProductParameter* param) {
  if (old.has_num_output()) param->set_num_output(old.num_output());
  if (old.has_biasterm()) param->set_bias_term(old.biasterm());
  if (old.has_weight_filler()) *param->mutable_weight_filler() = old.weight_filler();
  if (old.has_bias_filler()) *param->mutable_bias_filler() = old.bias_filler();
}

void take_pooling(const V0& old, PoolingParameter* param) {
  if (old.has_pool()) param->set_pool(static_cast<PoolingParameter::PoolMethod>(old.pool()));
  if (old.has_pad()) param->set_pad(old.pad());
  if (old.has_kernelsize()) param->set_kernel_size(old.kernelsize());
  if (old.has_stride()) param->set_stride(old.stride());
}

void take_lrn(const V0& old, LRNParameter* param) {
  if (old.has_local_size()) param->set_local_size(old.local_size());
  if (old.has_alpha()) param->set_alpha(old.alpha());
  if (old.has_beta()) param->set_beta(old.beta());
  if (old.has_k()) param->set_k(old.k());
}

// What the three layers that read pictures have in common.
template <class Param>
void take_pictures(const V0& old, Param* param) {
  if (old.has_source()) param->set_source(old.source());
  if (old.has_batchsize()) param->set_batch_size(old.batchsize());
  if (old.has_scale()) param->set_scale(old.scale());
  if (old.has_meanfile()) param->set_mean_file(old.meanfile());
  if (old.has_cropsize()) param->set_crop_size(old.cropsize());
  if (old.has_mirror()) param->set_mirror(old.mirror());
}

void take_images(const V0& old, ImageDataParameter* param) {
  take_pictures(old, param);
  if (old.has_rand_skip()) param->set_rand_skip(old.rand_skip());
  if (old.has_shuffle_images()) param->set_shuffle(old.shuffle_images());
  if (old.has_new_height()) param->set_new_height(static_cast<uint32_t>(old.new_height()));
  if (old.has_new_width()) param->set_new_width(static_cast<uint32_t>(old.new_width()));
}

void take_windows(const V0& old, WindowDataParameter* param) {
  take_pictures(old, param);
  if (old.has_det_fg_threshold()) param->set_fg_threshold(old.det_fg_threshold());
  if (old.has_det_bg_threshold()) param->set_bg_threshold(old.det_bg_threshold());
  if (old.has_det_fg_fraction()) param->set_fg_fraction(old.det_fg_fraction());
  if (old.has_det_context_pad()) param->set_context_pad(old.det_context_pad());
  if (old.has_det_crop_mode()) param->set_crop_mode(old.det_crop_mode());
}

void take_data(const V0& old, DataParameter* param) {
  take_pictures(old, param);
  if (old.has_rand_skip()) param->set_rand_skip(old.rand_skip());
}

void take_hdf5(const V0& old, HDF5DataParameter* param) {
  if (old.has_source()) param->set_source(old.source());
  if (old.has_batchsize()) param->set_batch_size(old.batchsize());
}

void take_fields(const V0& old, V1* layer) {
  switch (layer->type()) {
    case V1::CONVOLUTION:
      return take_convolution(old, layer->mutable_convolution_param());
    case V1::IM2COL:
      return take_convolution(old, layer->mutable_convolution_param());
    case V1::INNER_PRODUCT:
      return take_inner_product(old, layer->mutable_inner_product_param());
    case V1::POOLING:
      return take_pooling(old, layer->mutable_pooling_param());
    case V1::LRN:
      return take_lrn(old, layer->mutable_lrn_param());
    case V1::DATA:
      return take_data(old, layer->mutable_data_param());
    case V1::IMAGE_DATA:
      return take_images(old, layer->mutable_image_data_param());
    case V1::WINDOW_DATA:
      return take_windows(old, layer->mutable_window_data_param());
    case V1::HDF5_DATA:
      return take_hdf5(old, layer->mutable_hdf5_data_param());
    case V1::HDF5_OUTPUT:
      *layer->mutable_hdf5_output_param() = old.hdf5_output_param();
      return;
    case V1::DROPOUT:
      if (old.has_dropout_ratio()) {
        layer->mutable_dropout_param()->set_dropout_ratio(old.dropout_ratio());
      }
      return;
    case V1::INFOGAIN_LOSS:
      if (old.has_source()) layer->mutable_infogain_loss_param()->set_source(old.source());
      return;
    case V1::CONCAT:
      if (old.has_concat_dim()) layer->mutable_concat_param()->set_concat_dim(old.concat_dim());
      return;
    default:
      return;
  }
}

std::string place_of(const V1& layer, const std::string& file) {
  return str(layer.source_location().empty() ? file : layer.source_location(), ": layer \"",
             layer.layer().name(), "\" (", layer.layer().type(), ")");
}

V1 convert(const V1& outer, const std::string& file) {
  const V0& old = outer.layer();
  V1 layer = outer;
  layer.clear_layer();
  if (old.has_name()) layer.set_name(old.name());
  const auto it = types().find(old.type());
  if (it == types().end()) {
    std::vector<std::string> names;
    for (const auto& [name, type] : types()) names.push_back(name);
    fail(place_of(outer, file), ": no layer type of the oldest syntax",
         did_you_mean(old.type(), names));
  }
  layer.set_type(it->second);
  layer.mutable_blobs()->MergeFrom(old.blobs());
  layer.mutable_blobs_lr()->MergeFrom(old.blobs_lr());
  layer.mutable_weight_decay()->MergeFrom(old.weight_decay());
  take_fields(old, &layer);
  return layer;
}

// Drops padding layers; the convolutions and poolings that read one take over its bottom and pad.
void fold_padding(NetParameter& net, const std::string& file) {
  std::map<std::string, V1> padding;  // by top
  google::protobuf::RepeatedPtrField<V1> kept;
  for (V1& layer : *net.mutable_layers()) {
    for (std::string& bottom : *layer.mutable_bottom()) {
      const auto it = padding.find(bottom);
      if (it == padding.end()) continue;
      const std::string& type = layer.layer().type();
      require(type == "conv" || type == "pool", place_of(layer, file), ": cannot read \"", bottom,
              "\": a padding layer goes before conv or pool only");
      bottom = it->second.bottom(0);
      layer.mutable_layer()->set_pad(it->second.layer().pad());
    }
    for (const std::string& top : layer.top()) padding.erase(top);
    if (layer.layer().type() != "padding") {
      kept.Add()->Swap(&layer);
      continue;
    }
    require(layer.bottom_size() == 1 && layer.top_size() == 1, place_of(layer, file),
            ": needs one bottom and one top");
    padding[layer.top(0)] = layer;
  }
  net.mutable_layers()->Swap(&kept);
}

}  // namespace

void upgrade_v0(NetParameter& net, const std::string& file) {
  bool is_old = false;
  for (const V1& layer : net.layers()) is_old |= layer.has_layer();
  if (!is_old) return;
  fold_padding(net, file);
  for (V1& layer : *net.mutable_layers()) {
    if (layer.has_layer()) layer = convert(layer, file);
  }
  LOG(WARNING) << file << ": the oldest syntax, `layers { layer { ... } }`, is read as `layer`; "
               << "nothing needs to be done";
}

}  // namespace crema
