// DetectionOutput (Liu et al., "SSD", 2016): boxes from codes [N, P L 4], scores [N, P C] and
// priors [1, 2, P 4], suppressed per class; the top is [1, 1, K, 7]: picture, class, score and
// corners. A batch in which nothing was found gives one row of -1 for each picture, with its
// number.
#include <glog/logging.h>

#include <algorithm>

#include "layers/boxes.h"
#include "layers/checks.h"

namespace crema {
namespace {

constexpr int kRow = 7;

class DetectionOutputLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {3, -1, 1, 1}; }

  Shapes infer(const Shapes& bottom) override {
    const DetectionOutputParameter& p = param_.detection_output_param();
    require(bottom.size() == 3, "needs 3 bottoms (codes, scores, priors), got ", bottom.size());
    require(p.num_classes() >= 1, "num_classes: must be given and at least 1");
    require(p.nms_param().nms_threshold() >= 0, "nms_threshold: must not be negative");
    require(p.nms_param().eta() > 0 && p.nms_param().eta() <= 1, "eta: must be above 0, at most 1");
    require(bottom[2].axes() >= 3 && bottom[2][1] == 2 && bottom[2].count(2) % 4 == 0,
            bottom_text(param_, 2), " of shape ", bottom[2],
            " must be priors, [1, 2, 4 for each prior]");
    classes_ = p.num_classes();
    priors_ = bottom[2].count(2) / 4;
    locations_ = p.share_location() ? 1 : classes_;
    batch_ = bottom[0].dim_or_one(0);
    require(bottom[0].count() == batch_ * priors_ * locations_ * 4, bottom_text(param_, 0),
            " of shape ", bottom[0], " must hold 4 numbers for each of ", priors_, " priors",
            locations_ > 1 ? " and each class" : "");
    require(bottom[1].count() == batch_ * priors_ * classes_, bottom_text(param_, 1), " of shape ",
            bottom[1], " must hold ", classes_, " scores for each of ", priors_, " priors");
    top_ = Shape{1, 1, std::max(batch_, most_rows()), kRow};
    require_countable("top", top_);
    return {top_};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.has_backward = false;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.host_only = true;
    return traits;
  }

  Needs plan(Ops&, const PlanContext&) override {
    const DetectionOutputParameter& p = param_.detection_output_param();
    if (!has_warned_ && (p.has_save_output_param() || p.visualize() || p.has_save_file())) {
      has_warned_ = true;
      LOG(WARNING) << "layer \"" << param_.name()
                   << "\": save_output_param, visualize and save_file are not used: read the top";
    }
    const auto size = [](int64_t n) { return static_cast<size_t>(n); };
    codes_.resize(size(batch_ * priors_ * locations_ * 4));
    scores_.resize(size(batch_ * priors_ * classes_));
    prior_values_.resize(size(priors_ * 8));
    boxes_.resize(size(priors_ * locations_));
    rows_.reserve(size(top_.count()));
    order_.reserve(size(priors_));
    return {};
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    ops.download(bottom[0], codes_.data());
    ops.download(bottom[1], scores_.data());
    ops.download(bottom[2], prior_values_.data());
    rows_.clear();
    for (int64_t image = 0; image < batch_; ++image) detect(image);
    if (rows_.empty()) {
      for (int64_t image = 0; image < batch_; ++image) {
        rows_.push_back(static_cast<float>(image));
        rows_.insert(rows_.end(), kRow - 1, -1.0f);
      }
    }
    top_[2] = static_cast<int64_t>(rows_.size()) / kRow;
    Tensor y = top[0];
    y.desc.shape = top_;
    ops.upload(rows_.data(), y);
  }

  std::optional<Shapes> shapes_after_forward() const override { return Shapes{top_}; }

 private:
  struct Found {
    float score;
    int label, prior;
  };

  int64_t most_rows() const {
    const DetectionOutputParameter& p = param_.detection_output_param();
    const int64_t top_k = p.nms_param().has_top_k() ? p.nms_param().top_k() : -1;
    const int64_t per_class = top_k >= 0 ? std::min(top_k, priors_) : priors_;
    const int64_t all = per_class * classes_;
    return batch_ * (p.keep_top_k() >= 0 ? std::min<int64_t>(p.keep_top_k(), all) : all);
  }

  void decode(int64_t image) {
    const DetectionOutputParameter& p = param_.detection_output_param();
    const BoxCoder coder{p.code_type(), p.variance_encoded_in_target()};
    const float* code = codes_.data() + image * priors_ * locations_ * 4;
    for (int64_t prior = 0; prior < priors_; ++prior) {
      const float* corners = prior_values_.data() + prior * 4;
      const Box box{corners[0], corners[1], corners[2], corners[3]};
      for (int64_t l = 0; l < locations_; ++l, code += 4) {
        boxes_[static_cast<size_t>(l * priors_ + prior)] =
            coder.decode(code, box, corners + priors_ * 4);
      }
    }
  }

  /// The boxes of one class that stay, best first, into order_.
  void choose(int64_t image, int64_t label) {
    const DetectionOutputParameter& p = param_.detection_output_param();
    const NonMaximumSuppressionParameter& nms = p.nms_param();
    const float* scores = scores_.data() + image * priors_ * classes_ + label;
    order_.clear();
    for (int64_t prior = 0; prior < priors_; ++prior) {
      const float score = scores[prior * classes_];
      const bool passes =
          p.has_confidence_threshold() ? score > p.confidence_threshold() : score == score;
      if (passes) order_.push_back(static_cast<int>(prior));
    }
    std::sort(order_.begin(), order_.end(), [&](int a, int b) {
      const float first = scores[a * classes_], second = scores[b * classes_];
      return first > second || (first == second && a < b);
    });
    if (nms.has_top_k() && nms.top_k() >= 0 && order_.size() > static_cast<size_t>(nms.top_k())) {
      order_.resize(static_cast<size_t>(nms.top_k()));
    }
    const auto first = locations_ > 1 ? static_cast<size_t>(label * priors_) : size_t{0};
    suppress({boxes_.data() + first, static_cast<size_t>(priors_)},
             {.threshold = nms.nms_threshold(), .eta = nms.eta()}, &order_);
  }

  void detect(int64_t image) {
    const DetectionOutputParameter& p = param_.detection_output_param();
    decode(image);
    found_.clear();
    for (int64_t label = 0; label < classes_; ++label) {
      if (label == p.background_label_id()) continue;
      choose(image, label);
      const float* scores = scores_.data() + image * priors_ * classes_ + label;
      for (const int prior : order_) {
        found_.push_back({scores[prior * classes_], static_cast<int>(label), prior});
      }
    }
    keep_best();
    for (const Found& f : found_) {
      const int64_t location = locations_ > 1 ? f.label : 0;
      const Box& box = boxes_[static_cast<size_t>(location * priors_ + f.prior)];
      rows_.insert(rows_.end(), {static_cast<float>(image), static_cast<float>(f.label), f.score,
                                 box.xmin, box.ymin, box.xmax, box.ymax});
    }
  }

  /// Cuts found_ to the keep_top_k best, in order of class and score.
  void keep_best() {
    const int64_t most = param_.detection_output_param().keep_top_k();
    if (most < 0 || static_cast<int64_t>(found_.size()) <= most) return;
    const auto by_score = [](const Found& a, const Found& b) {
      if (a.score != b.score) return a.score > b.score;
      return a.label != b.label ? a.label < b.label : a.prior < b.prior;
    };
    std::sort(found_.begin(), found_.end(), by_score);
    found_.resize(static_cast<size_t>(most));
    std::sort(found_.begin(), found_.end(), [&](const Found& a, const Found& b) {
      return a.label != b.label ? a.label < b.label : by_score(a, b);
    });
  }

  int64_t batch_ = 0, priors_ = 0, classes_ = 1, locations_ = 1;
  Shape top_;
  bool has_warned_ = false;
  std::vector<float> codes_, scores_, prior_values_, rows_;
  std::vector<Box> boxes_;
  std::vector<int> order_;
  std::vector<Found> found_;
};

REGISTER_LAYER("DetectionOutput", DetectionOutputLayer)

}  // namespace
}  // namespace crema
