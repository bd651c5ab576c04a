// DetectionEvaluate (Liu et al., "SSD", 2016): detections [1, 1, D, 7] against true boxes [1, 1, G,
// 8]. The top is [1, 1, K, 5]: for each class but the background a row (-1, class, number of true
// boxes, -1, -1), then for each detection (picture, class, score, is right, is wrong). With
// name_size_file, lines "name height width", boxes are compared in pixels; each picture that
// something was found in takes the next line, and after the last comes the first again.
#include <algorithm>
#include <sstream>

#include "base/file.h"
#include "layers/checks.h"
#include "layers/ground_truth.h"

namespace crema {
namespace {

constexpr int kFoundRow = 7, kTopRow = 5;

class DetectionEvaluateLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1}; }

  Shapes infer(const Shapes& bottom) override {
    const DetectionEvaluateParameter& p = param_.detection_evaluate_param();
    require(p.num_classes() >= 1, "num_classes: must be given and at least 1");
    require(p.overlap_threshold() > 0, "overlap_threshold: must be above 0");
    require(!p.has_resize_param() || p.resize_param().resize_mode() == ResizeParameter::WARP,
            "resize_param: boxes are compared in whole pictures, so resize_mode must be WARP");
    require(bottom[0].axes() == 4 && bottom[0][3] == kFoundRow, bottom_text(param_, 0),
            " of shape ", bottom[0], " must be detections, [1, 1, K, 7]");
    require(bottom[1].axes() == 4 && bottom[1][3] == kTruthRow, bottom_text(param_, 1),
            " of shape ", bottom[1], " must be true boxes, [1, 1, G, 8]");
    top_ = Shape{1, 1, p.num_classes() + bottom[0][2], kTopRow};
    return {top_};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.has_backward = false;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.host_only = true;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    found_values_.resize(static_cast<size_t>(context.bottom[0].count()));
    truth_values_.resize(static_cast<size_t>(context.bottom[1].count()));
    rows_.reserve(static_cast<size_t>(context.top[0].count()));
    if (sizes_.empty() && param_.detection_evaluate_param().has_name_size_file()) read_sizes();
    return {};
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const DetectionEvaluateParameter& p = param_.detection_evaluate_param();
    ops.download(bottom[0], found_values_.data());
    ops.download(bottom[1], truth_values_.data());
    truth_.clear();
    read_truth(truth_values_, static_cast<int>(p.num_classes()),
               static_cast<int>(p.background_label_id()), &truth_);
    is_taken_.assign(truth_.size(), 0);
    rows_.clear();
    count_truth();
    read_found(static_cast<size_t>(bottom[0].count()));
    if (!sizes_.empty()) scale_boxes();
    for (const Found& f : found_) judge(f);
    if (rows_.empty()) rows_.assign(kTopRow, -1.0f);
    top_[2] = static_cast<int64_t>(rows_.size()) / kTopRow;
    Tensor y = top[0];
    y.desc.shape = top_;
    ops.upload(rows_.data(), y);
  }

  std::optional<Shapes> shapes_after_forward() const override { return Shapes{top_}; }

 private:
  struct Found {
    int image, label;
    float score;
    Box box;
    size_t place;
  };

  struct Size {
    int height = 0, width = 0;
  };

  void read_sizes() {
    const std::string& path = param_.detection_evaluate_param().name_size_file();
    std::istringstream words(read_file(path));
    std::string name;
    Size size;
    while (words >> name >> size.height >> size.width) sizes_.push_back(size);
    require(words.eof() && !sizes_.empty(), "name_size_file: ", path,
            ": each line must be a name, a height and a width");
  }

  /// All boxes from fractions to pixels.
  void scale_boxes() {
    const auto scale = [](Box* box, const Size& size) {
      const Box cut = clipped(*box);
      const auto width = static_cast<float>(size.width), height = static_cast<float>(size.height);
      *box = {cut.xmin * width, cut.ymin * height, cut.xmax * width, cut.ymax * height};
    };
    Size size;
    for (size_t i = 0; i < found_.size(); ++i) {
      if (i == 0 || found_[i].image != found_[i - 1].image) {
        size = sizes_[next_size_++ % sizes_.size()];
        for (TrueBox& truth : truth_) {
          if (truth.image == found_[i].image) scale(&truth.box, size);
        }
      }
      scale(&found_[i].box, size);
    }
  }

  void count_truth() {
    const DetectionEvaluateParameter& p = param_.detection_evaluate_param();
    for (int label = 0; label < static_cast<int>(p.num_classes()); ++label) {
      if (label == static_cast<int>(p.background_label_id())) continue;
      const auto count = std::count_if(truth_.begin(), truth_.end(), [&](const TrueBox& t) {
        return t.label == label && (p.evaluate_difficult_gt() || !t.is_difficult);
      });
      rows_.insert(rows_.end(), {-1, static_cast<float>(label), static_cast<float>(count), -1, -1});
    }
  }

  /// Into found_, by picture, class and falling score.
  void read_found(size_t count) {
    found_.clear();
    for (size_t i = 0; i < count; i += kFoundRow) {
      const float* row = found_values_.data() + i;
      if (!(row[0] >= 0) || !(row[1] >= 0)) continue;
      found_.push_back({static_cast<int>(row[0]), static_cast<int>(row[1]), row[2],
                        clipped({row[3], row[4], row[5], row[6]}), i});
    }
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      if (a.image != b.image) return a.image < b.image;
      if (a.label != b.label) return a.label < b.label;
      return a.score != b.score ? a.score > b.score : a.place < b.place;
    });
  }

  /// Right when the true box of its class that it overlaps most is above the threshold and not
  /// taken; neither right nor wrong on a difficult box that is not evaluated.
  void judge(const Found& f) {
    const DetectionEvaluateParameter& p = param_.detection_evaluate_param();
    float best = -1;
    size_t at = 0;
    for (size_t i = 0; i < truth_.size(); ++i) {
      if (truth_[i].image != f.image || truth_[i].label != f.label) continue;
      const float overlap = box_overlap(f.box, truth_[i].box, sizes_.empty() ? 0.0f : 1.0f);
      if (overlap <= best) continue;
      best = overlap;
      at = i;
    }
    bool right = false, wrong = true;
    if (best >= p.overlap_threshold()) {
      const bool counts = p.evaluate_difficult_gt() || !truth_[at].is_difficult;
      right = counts && !is_taken_[at];
      wrong = counts && is_taken_[at];
      if (counts) is_taken_[at] = 1;
    }
    rows_.insert(rows_.end(), {static_cast<float>(f.image), static_cast<float>(f.label), f.score,
                               right ? 1.0f : 0.0f, wrong ? 1.0f : 0.0f});
  }

  Shape top_;
  std::vector<float> found_values_, truth_values_, rows_;
  std::vector<TrueBox> truth_;
  std::vector<uint8_t> is_taken_;
  std::vector<Found> found_;
  std::vector<Size> sizes_;
  size_t next_size_ = 0;
};

REGISTER_LAYER("DetectionEvaluate", DetectionEvaluateLayer)

}  // namespace
}  // namespace crema
