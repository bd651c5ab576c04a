// The table of types. Words of the V1 enum are compared by their letters alone.
#include "io/fork_layers.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace crema {
namespace {

struct ForkLayer {
  std::string_view type, fork;
};

constexpr ForkLayer kLayers[] = {
    {"BatchReduction", "yjxiong's Caffe (TSN)"},
    {"BlackAugmentation", "FlowNet"},
    {"BoxAnnotatorOHEM", "R-FCN"},
    {"BoxData", "Intel Caffe"},
    {"ChannelNorm", "FlowNet"},
    {"Convolution3D", "C3D"},
    {"ConvolutionRistretto", "Ristretto"},
    {"Correlation", "FlowNet"},
    {"Correlation1D", "DispNet"},
    {"CPMData", "the pose forks (CPM, OpenPose)"},
    {"CuDNNBN", "PSPNet's Caffe"},
    {"CustomData", "FlowNet"},
    {"DataAugmentation", "FlowNet"},
    {"DataHeatmap", "caffe-heatmap"},
    {"DeconvolutionRistretto", "Ristretto"},
    {"DeformableConvolution", "Deformable ConvNets"},
    {"DenseBlock", "the DenseNet fork"},
    {"DenseCRF", "DeepLab"},
    {"DenseImageData", "SegNet's Caffe"},
    {"DetectNetTransformation", "NVCaffe"},
    {"Downsample", "FlowNet"},
    {"EvalDetection", "the YOLOv2 fork"},
    {"FcRistretto", "Ristretto"},
    {"FLOWriter", "FlowNet"},
    {"FlowAugmentation", "FlowNet"},
    {"FlowWarp", "FlowNet"},
    {"FocalLoss", "the focal loss forks"},
    {"GenerateAugmentationParameters", "FlowNet"},
    {"GRN", "caffe-windows"},
    {"ImageLabelmapData", "HED"},
    {"ImageSegData", "DeepLab"},
    {"ImgWriter", "FlowNet"},
    {"ImResize", "the pose forks (CPM, OpenPose); it enlarges heat maps, after the net"},
    {"Insanity", "caffe-windows"},
    {"LabelSpecificAdd", "the CosFace forks"},
    {"LabelSpecificMargin", "caffe-windows"},
    {"LargeMarginInnerProduct", "L-Softmax"},
    {"LpqLoss", "FlowNet"},
    {"LRNRistretto", "Ristretto"},
    {"Lstm", "the OCR forks; BVLC's is LSTM"},
    {"MarginInnerProduct", "SphereFace"},
    {"MaskPooling", "MNC"},
    {"MaskResize", "MNC"},
    {"MatRead", "DeepLab"},
    {"MatWrite", "DeepLab"},
    {"MnActivation", "Intel Caffe"},
    {"MultiStageMeanfield", "CRF-RNN"},
    {"Nms", "the pose forks (CPM, OpenPose); it finds peaks, after the net"},
    {"NNInterp", "ICNet"},
    {"Pooling3D", "C3D"},
    {"PSROIAlign", "the R-FCN forks"},
    {"Region", "the YOLOv2 converters"},
    {"RegionLoss", "the YOLOv2 fork"},
    {"Resample", "FlowNet"},
    {"ROIAlign", "the Mask R-CNN forks"},
    {"ROIWarping", "MNC"},
    {"SegAccuracy", "DeepLab"},
    {"SimplerNMS", "OpenVINO's Caffe"},
    {"SmoothL1LossOHEM", "R-FCN"},
    {"SoftmaxWithLossOHEM", "R-FCN"},
    {"SpatialTransformer", "the spatial transformer fork"},
    {"TRT", "NVCaffe"},
    {"UniqueLabel", "DeepLab"},
    {"Unpooling", "DeconvNet; SegNet's Upsample is built in"},
    {"VideoData", "SSD and C3D"},
    {"WarpCTC", "the OCR forks; CTCLoss is built in"},
    {"Yolo", "the YOLOv3 converters"},
    {"YoloDetectionOutput", "the YOLOv2 fork"},
    {"Yolov3", "the YOLOv3 fork"},
    {"Yolov3DetectionOutput", "the YOLOv3 fork"},
};

bool is_same(std::string_view type, std::string_view word) {
  size_t at = 0;
  for (const char c : word) {
    if (c == '_') continue;
    const auto lower = [](char letter) { return std::tolower(static_cast<unsigned char>(letter)); };
    if (at == type.size() || lower(type[at++]) != lower(c)) return false;
  }
  return at == type.size();
}

}  // namespace

std::string fork_of_layer(std::string_view type) {
  const auto* exact = std::find_if(std::begin(kLayers), std::end(kLayers),
                                   [&](const ForkLayer& layer) { return layer.type == type; });
  if (exact != std::end(kLayers)) return std::string(exact->fork);
  const auto* similar = std::find_if(std::begin(kLayers), std::end(kLayers),
                                     [&](const ForkLayer& l) { return is_same(l.type, type); });
  return similar == std::end(kLayers) ? "" : std::string(similar->fork);
}

}  // namespace crema
