// Proposal (Ren et al., "Faster R-CNN", 2015): regions from scores [N, 2 A, H, W], codes [N, 4 A,
// H, W] and im_info (height, width, scale of each picture): A anchors per cell are moved by their
// codes, cut to the picture, sorted, suppressed. Tops: regions [R, 5] (picture, corners in pixels)
// and, if wanted, their scores [R, 1]. Also R-CNN's `Python` layer rpn.proposal_layer,
// ProposalLayer.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/str.h"
#include "layers/boxes.h"
#include "layers/checks.h"

namespace crema {
namespace {

constexpr float kPixel = 1;  // corners are pixels, both included

class ProposalLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {3, 3, 1, 2}; }

  Shapes infer(const Shapes& bottom) override {
    const ProposalParameter& p = param_.proposal_param();
    require(p.feat_stride() >= 1 && p.base_size() >= 1,
            "feat_stride and base_size: must be at least 1");
    require(p.nms_thresh() >= 0, "nms_thresh: must not be negative");
    make_anchors();
    const Shape &scores = bottom[0], &codes = bottom[1];
    const auto anchors = static_cast<int64_t>(anchors_.size());
    require(scores.axes() == 4 && scores[1] == 2 * anchors, bottom_text(param_, 0), " of shape ",
            scores, " must have ", 2 * anchors, " channels, two scores for each of ", anchors,
            " anchors");
    require(codes.axes() == 4 && codes[0] == scores[0] && codes[1] == 4 * anchors &&
                codes[2] == scores[2] && codes[3] == scores[3],
            bottom_text(param_, 1), " of shape ", codes, " must be ", scores[0], ' ', 4 * anchors,
            ' ', scores[2], ' ', scores[3]);
    require(bottom[2].count() >= 3 * scores[0] && bottom[2].count() % scores[0] == 0,
            bottom_text(param_, 2), " of shape ", bottom[2],
            " must hold height, width and scale of each picture");
    scores_shape_ = scores;
    const int64_t all = anchors * scores[2] * scores[3];
    regions_ = scores[0] * std::min<int64_t>(all, p.post_nms_topn());
    return tops();
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.has_backward = false;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.host_only = true;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    const auto size = [](const TensorDesc& desc) { return static_cast<size_t>(desc.count()); };
    scores_.resize(size(context.bottom[0]));
    codes_.resize(size(context.bottom[1]));
    info_.resize(size(context.bottom[2]));
    rows_.reserve(size(context.top[0]));
    kept_scores_.reserve(size(context.top[0]) / 5);
    return {};
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    ops.download(bottom[0], scores_.data());
    ops.download(bottom[1], codes_.data());
    ops.download(bottom[2], info_.data());
    rows_.clear();
    kept_scores_.clear();
    for (int64_t image = 0; image < scores_shape_[0]; ++image) propose(image);
    regions_ = static_cast<int64_t>(kept_scores_.size());
    const Shapes shapes = tops();
    for (size_t i = 0; i < top.size() && regions_ > 0; ++i) {
      Tensor y = top[i];
      y.desc.shape = shapes[i];
      ops.upload(i == 0 ? rows_.data() : kept_scores_.data(), y);
    }
  }

  std::optional<Shapes> shapes_after_forward() const override { return tops(); }

 private:
  Shapes tops() const {
    Shapes shapes{Shape{regions_, 5}};
    if (param_.top_size() > 1) shapes.push_back(Shape{regions_, 1});
    return shapes;
  }

  /// For each ratio (height over width) a box of the base's area, whole-numbered, then each scale.
  void make_anchors() {
    const ProposalParameter& p = param_.proposal_param();
    const std::vector<float> ratios = p.ratio_size() > 0
                                          ? std::vector<float>(p.ratio().begin(), p.ratio().end())
                                          : std::vector<float>{0.5f, 1, 2};
    const std::vector<float> scales = p.scale_size() > 0
                                          ? std::vector<float>(p.scale().begin(), p.scale().end())
                                          : std::vector<float>{8, 16, 32};
    const double base = p.base_size(), center = (base - 1) / 2;
    anchors_.clear();
    for (const float ratio : ratios) {
      require(ratio > 0, "ratio: must be above 0, got ", ratio);
      const double width = std::nearbyint(std::sqrt(base * base / ratio));
      const double height = std::nearbyint(width * ratio);
      for (const float scale : scales) {
        require(scale > 0, "scale: must be above 0, got ", scale);
        const double half_w = (width * scale - 1) / 2, half_h = (height * scale - 1) / 2;
        anchors_.push_back(
            {static_cast<float>(center - half_w), static_cast<float>(center - half_h),
             static_cast<float>(center + half_w), static_cast<float>(center + half_h)});
      }
    }
  }

  /// The anchor at a place, moved by its code; the place counts cells, then anchors.
  Box moved(int64_t image, int64_t place) const {
    const auto anchors = static_cast<int64_t>(anchors_.size());
    const int64_t cells = scores_shape_.count(2), cell = place / anchors, a = place % anchors;
    const auto stride = static_cast<float>(param_.proposal_param().feat_stride());
    const float x = static_cast<float>(cell % scores_shape_[3]) * stride;
    const float y = static_cast<float>(cell / scores_shape_[3]) * stride;
    const Box& anchor = anchors_[static_cast<size_t>(a)];
    const float width = anchor.width() + kPixel, height = anchor.height() + kPixel;
    const float* code = codes_.data() + (image * 4 * anchors + 4 * a) * cells + cell;
    const float center_x = code[0] * width + anchor.xmin + x + 0.5f * width;
    const float center_y = code[cells] * height + anchor.ymin + y + 0.5f * height;
    const float new_width = std::exp(code[2 * cells]) * width;
    const float new_height = std::exp(code[3 * cells]) * height;
    return {center_x - 0.5f * new_width, center_y - 0.5f * new_height, center_x + 0.5f * new_width,
            center_y + 0.5f * new_height};
  }

  void propose(int64_t image) {
    const ProposalParameter& p = param_.proposal_param();
    const auto anchors = static_cast<int64_t>(anchors_.size());
    const int64_t cells = scores_shape_.count(2);
    const float* info =
        info_.data() + image * static_cast<int64_t>(info_.size()) / scores_shape_[0];
    const float smallest = static_cast<float>(p.min_size()) * info[2];
    boxes_.clear();
    box_scores_.clear();
    for (int64_t place = 0; place < cells * anchors; ++place) {
      Box box = moved(image, place);
      box.xmin = std::clamp(box.xmin, 0.0f, std::max(0.0f, info[1] - 1));
      box.xmax = std::clamp(box.xmax, 0.0f, std::max(0.0f, info[1] - 1));
      box.ymin = std::clamp(box.ymin, 0.0f, std::max(0.0f, info[0] - 1));
      box.ymax = std::clamp(box.ymax, 0.0f, std::max(0.0f, info[0] - 1));
      const float score = scores_[static_cast<size_t>(
          (image * 2 * anchors + anchors + place % anchors) * cells + place / anchors)];
      const bool is_large = box.width() + kPixel >= smallest && box.height() + kPixel >= smallest;
      if (!is_large || !(score == score)) continue;
      boxes_.push_back(box);
      box_scores_.push_back(score);
    }
    keep_best(image);
  }

  void keep_best(int64_t image) {
    const ProposalParameter& p = param_.proposal_param();
    order_.resize(boxes_.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int>(i);
    std::sort(order_.begin(), order_.end(), [&](int a, int b) {
      const float first = box_scores_[static_cast<size_t>(a)];
      const float second = box_scores_[static_cast<size_t>(b)];
      return first > second || (first == second && a < b);
    });
    if (p.pre_nms_topn() > 0 && order_.size() > p.pre_nms_topn()) order_.resize(p.pre_nms_topn());
    suppress(boxes_, {.threshold = p.nms_thresh(), .eta = 1, .offset = kPixel}, &order_);
    if (order_.size() > p.post_nms_topn()) order_.resize(p.post_nms_topn());
    for (const int i : order_) {
      const Box& box = boxes_[static_cast<size_t>(i)];
      rows_.insert(rows_.end(),
                   {static_cast<float>(image), box.xmin, box.ymin, box.xmax, box.ymax});
      kept_scores_.push_back(box_scores_[static_cast<size_t>(i)]);
    }
  }

  Shape scores_shape_;
  int64_t regions_ = 0;
  std::vector<Box> anchors_, boxes_;
  std::vector<float> scores_, codes_, info_, rows_, kept_scores_, box_scores_;
  std::vector<int> order_;
};

REGISTER_LAYER("Proposal", ProposalLayer)

/// The number behind 'key' in R-CNN's param_str ("'feat_stride': 16"), or the default.
uint32_t number_in(const std::string& text, const std::string& key, uint32_t otherwise) {
  const size_t at = text.find(key);
  const size_t colon = at == std::string::npos ? at : text.find(':', at);
  if (colon == std::string::npos) return otherwise;
  const long value = std::strtol(text.c_str() + colon + 1, nullptr, 10);
  require(value >= 1, "param_str: ", key, " must be a whole number, at least 1");
  return static_cast<uint32_t>(value);
}

/// The numbers of the list behind 'key' ("'scales': [8, 16]", or in round brackets).
template <class Numbers>
void take_list(const std::string& text, const std::string& key, Numbers* out) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return;
  const size_t open = text.find_first_of("[(", at);
  const size_t close = text.find_first_of("])", std::min(open, text.size()));
  require(close != std::string::npos, "param_str: ", key,
          " must be a list of numbers, [8, 16, 32]");
  for (const std::string& word : split(text.substr(open + 1, close - open - 1), ',')) {
    char* end = nullptr;
    const float value = std::strtof(word.c_str(), &end);
    if (word.find_first_not_of(' ') == std::string::npos) continue;  // "(8, )"
    require(value > 0 && std::string(end).find_first_not_of(' ') == std::string::npos,
            "param_str: ", key, ": \"", word, "\" is no number above 0");
    out->Add(value);
  }
}

/// R-CNN's proposal layer is built in; how many regions stay is its configuration's per phase.
std::unique_ptr<Layer> make_python(const LayerParameter& param, const LayerContext& context) {
  const PythonParameter& python = param.python_param();
  require(
      python.layer() == "ProposalLayer", "Python layers are not supported (this one is ",
      python.layer(), " of ", python.module(),
      "); of them only R-CNN's proposal layer (module rpn.proposal_layer, layer ProposalLayer) ",
      "is built in");
  LayerParameter proposal = param;
  ProposalParameter& fields = *proposal.mutable_proposal_param();
  fields.set_feat_stride(number_in(python.param_str(), "feat_stride", 16));
  take_list(python.param_str(), "scales", fields.mutable_scale());
  take_list(python.param_str(), "ratios", fields.mutable_ratio());
  if (context.phase == TRAIN) {
    fields.set_pre_nms_topn(12000);
    fields.set_post_nms_topn(2000);
  }
  return std::make_unique<ProposalLayer>(proposal, context);
}

struct PythonRegistrar {
  PythonRegistrar() { layer_registry().add("Python", make_python); }
};
const PythonRegistrar python_registrar;

}  // namespace
}  // namespace crema
