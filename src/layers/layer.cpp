// The registry of layer types, and which fork a type that is missing comes from.
#include "layers/layer.h"

#include <map>

namespace crema {
namespace {

/// " (a layer of FORK)" where the fork is known.
std::string origin_of(const std::string& type) {
  static const std::map<std::string, const char*> forks = {
      {"BoxAnnotatorOHEM", "R-FCN"},
      {"BoxData", "Intel Caffe"},
      {"Correlation", "FlowNet"},
      {"CuDNNBN", "PSPNet's Caffe"},
      {"DenseImageData", "SegNet's Caffe"},
      {"DetectNetTransformation", "NVCaffe"},
      {"EvalDetection", "the YOLOv2 fork"},
      {"FlowWarp", "FlowNet"},
      {"GRN", "caffe-windows"},
      {"ImageSegData", "DeepLab"},
      {"Insanity", "caffe-windows"},
      {"Lstm", "the OCR forks; BVLC's is LSTM"},
      {"MarginInnerProduct", "SphereFace"},
      {"MnActivation", "Intel Caffe"},
      {"NNInterp", "ICNet"},
      {"ROIAlign", "the Mask R-CNN forks"},
      {"RegionLoss", "the YOLOv2 fork"},
      {"Resample", "FlowNet"},
      {"SegAccuracy", "DeepLab"},
      {"SimplerNMS", "OpenVINO's Caffe"},
      {"SmoothL1LossOHEM", "R-FCN"},
      {"SoftmaxWithLossOHEM", "R-FCN"},
      {"SpatialDropout", "Intel Caffe"},
      {"SpatialTransformer", "the spatial transformer fork"},
      {"TRT", "NVCaffe"},
      {"VideoData", "SSD"},
      {"WarpCTC", "the OCR forks; CTCLoss is built in"},
      {"YoloDetectionOutput", "the YOLOv2 fork"},
      {"Yolov3", "the YOLOv3 fork"},
      {"Yolov3DetectionOutput", "the YOLOv3 fork"},
  };
  const auto it = forks.find(type);
  return it == forks.end() ? "" : str(" (a layer of ", it->second, ')');
}

}  // namespace

Registry<LayerFactory>& layer_registry() {
  static Registry<LayerFactory> registry;
  return registry;
}

std::unique_ptr<Layer> make_layer(const LayerParameter& param, const LayerContext& context) {
  const LayerFactory* factory = layer_registry().find(param.type());
  if (!factory) {
    const std::string origin = origin_of(param.type());
    fail("unknown layer type \"", param.type(), '"', origin,
         origin.empty() ? did_you_mean(param.type(), layer_registry().names()) : "");
  }
  return (*factory)(param, context);
}

}  // namespace crema
