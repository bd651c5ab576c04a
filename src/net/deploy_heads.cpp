// Fields of the loss that say how its bottoms are to be read go into the layer that reads them.
#include "net/deploy_heads.h"

namespace crema {
namespace {

LayerParameter layer_over(const std::string& type, const std::string& bottom,
                          const std::string& top) {
  LayerParameter layer;
  layer.set_name(top);
  layer.set_type(type);
  layer.add_bottom(bottom);
  layer.add_top(top);
  return layer;
}

}  // namespace

std::optional<LayerParameter> head_of(const LayerParameter& loss, const std::string& name) {
  LayerParameter head;
  if (loss.type() == "SoftmaxWithLoss" || loss.type() == "InfogainLoss") {
    head.set_type("Softmax");
    if (loss.has_softmax_param()) *head.mutable_softmax_param() = loss.softmax_param();
    if (loss.infogain_loss_param().has_axis()) {
      head.mutable_softmax_param()->set_axis(loss.infogain_loss_param().axis());
    }
  } else if (loss.type() == "SigmoidCrossEntropyLoss") {
    head.set_type("Sigmoid");
  } else {
    return std::nullopt;
  }
  head.set_name(name);
  head.add_bottom(loss.bottom(0));
  head.add_top(name);
  return head;
}

std::vector<LayerParameter> detection_head(const LayerParameter& loss, const std::string& name) {
  const MultiBoxLossParameter& p = loss.multibox_loss_param();
  const std::string& scores = loss.bottom(1);
  std::vector<LayerParameter> head;
  if (p.conf_loss_type() == MultiBoxLossParameter::LOGISTIC) {
    head.push_back(layer_over("Sigmoid", scores, scores + "_sigmoid"));
  } else {
    head.push_back(layer_over("Reshape", scores, scores + "_reshape"));
    for (const int64_t dim : {int64_t{0}, int64_t{-1}, int64_t{p.num_classes()}}) {
      head.back().mutable_reshape_param()->mutable_shape()->add_dim(dim);
    }
    head.push_back(layer_over("Softmax", scores + "_reshape", scores + "_softmax"));
    head.back().mutable_softmax_param()->set_axis(2);
    head.push_back(layer_over("Flatten", scores + "_softmax", scores + "_flatten"));
  }
  LayerParameter output = layer_over("DetectionOutput", loss.bottom(0), name);
  output.add_bottom(head.back().top(0));
  output.add_bottom(loss.bottom(2));
  DetectionOutputParameter& boxes = *output.mutable_detection_output_param();
  boxes.set_num_classes(p.num_classes());
  boxes.set_share_location(p.share_location());
  boxes.set_background_label_id(static_cast<int>(p.background_label_id()));
  boxes.set_code_type(p.code_type());
  boxes.set_variance_encoded_in_target(p.encode_variance_in_target());
  boxes.mutable_nms_param()->set_nms_threshold(0.45F);
  boxes.mutable_nms_param()->set_top_k(400);
  boxes.set_keep_top_k(200);
  boxes.set_confidence_threshold(0.01F);
  head.push_back(output);
  return head;
}

}  // namespace crema
