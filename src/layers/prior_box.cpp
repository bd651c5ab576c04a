// PriorBox (Liu et al., "SSD", 2016): the default boxes of every cell of bottom 0 on the picture of
// bottom 1, corners as fractions of it, [1, 2, 4 P]: boxes, then variances. Per cell and min_size:
// the square, the square of side sqrt(min max) where there is a max_size, then min sqrt(r) x min /
// sqrt(r) for each ratio r (and 1 / r with flip). Sizes count without their fractions, as in SSD's
// code: 35.84 is 35, and nets are trained with that.
#include <algorithm>
#include <cmath>

#include "layers/checks.h"

namespace crema {
namespace {

class PriorBoxLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1}; }

  Shapes infer(const Shapes& bottom) override {
    for (int i = 0; i < 2; ++i) {
      require(bottom[static_cast<size_t>(i)].axes() == 4, bottom_text(param_, i), " of shape ",
              bottom[static_cast<size_t>(i)], " must have four axes");
    }
    check_sizes();
    read_ratios();
    const PriorBoxParameter& p = param_.prior_box_param();
    cells_h_ = bottom[0][2];
    cells_w_ = bottom[0][3];
    const bool square = p.has_img_size(), both = p.has_img_h() && p.has_img_w();
    require(square || both || (!p.has_img_h() && !p.has_img_w()),
            "img_h and img_w must be given together");
    require(!square || !p.has_img_h(), "img_size and img_h exclude each other");
    image_h_ = square ? p.img_size() : both ? p.img_h() : static_cast<float>(bottom[1][2]);
    image_w_ = square ? p.img_size() : both ? p.img_w() : static_cast<float>(bottom[1][3]);
    require(image_h_ > 0 && image_w_ > 0, "img_size: must be above 0");
    read_steps();
    const int64_t per_cell =
        static_cast<int64_t>(ratios_.size()) * p.min_size_size() + p.max_size_size();
    const Shape top{1, 2, cells_h_ * cells_w_ * per_cell * 4};
    require_countable("top", top);
    return {top};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.has_backward = false;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    return traits;
  }

  Needs plan(Ops&, const PlanContext&) override {
    make_boxes();
    is_uploaded_ = false;
    return {.state = values_.size() * sizeof(float)};
  }

  void bind(const Workspace& workspace) override {
    boxes_ = {workspace.state.data, {.shape = {static_cast<int64_t>(values_.size())}}};
  }

  /// Uploads at the first call alone, so that the others can be recorded.
  void forward(Ops& ops, CTensors, Tensors top) override {
    if (!is_uploaded_) ops.upload(values_.data(), boxes_);
    is_uploaded_ = true;
    ops.convert(CTensor{boxes_.data, top[0].desc}, top[0]);
  }

 private:
  void check_sizes() const {
    const PriorBoxParameter& p = param_.prior_box_param();
    require(p.min_size_size() > 0, "min_size: missing");
    for (const float size : p.min_size()) {
      require(size >= 1, "min_size: must be at least 1, got ", size);
    }
    require(p.max_size_size() == 0 || p.max_size_size() == p.min_size_size(),
            "max_size: ", p.max_size_size(), " values, but ", p.min_size_size(), " of min_size");
    for (int i = 0; i < p.max_size_size(); ++i) {
      require(p.max_size(i) > p.min_size(i), "max_size: ", p.max_size(i),
              " must be above its min_size ", p.min_size(i));
    }
    const int variances = p.variance_size();
    require(variances <= 1 || variances == 4, "variance: ", variances,
            " values, but 1 or 4 are possible");
    for (const float variance : p.variance()) {
      require(variance > 0, "variance: must be above 0, got ", variance);
    }
  }

  /// 1 first; a ratio that is there already is not added again.
  void read_ratios() {
    const PriorBoxParameter& p = param_.prior_box_param();
    ratios_ = {1};
    for (const float ratio : p.aspect_ratio()) {
      require(ratio > 0, "aspect_ratio: must be above 0, got ", ratio);
      const bool is_there = std::any_of(ratios_.begin(), ratios_.end(), [&](float other) {
        return std::fabs(ratio - other) < 1e-6f;
      });
      if (is_there) continue;
      ratios_.push_back(ratio);
      if (p.flip()) ratios_.push_back(1 / ratio);
    }
  }

  void read_steps() {
    const PriorBoxParameter& p = param_.prior_box_param();
    require(!p.has_step() || (!p.has_step_h() && !p.has_step_w()),
            "step and step_h, step_w exclude each other");
    require(p.has_step_h() == p.has_step_w(), "step_h and step_w must be given together");
    step_h_ = p.has_step() ? p.step() : p.step_h();
    step_w_ = p.has_step() ? p.step() : p.step_w();
    require(step_h_ >= 0 && step_w_ >= 0, "step: must not be negative");
    if (step_h_ == 0 || step_w_ == 0) {
      step_h_ = image_h_ / static_cast<float>(cells_h_);
      step_w_ = image_w_ / static_cast<float>(cells_w_);
    }
  }

  void add_box(float center_x, float center_y, float width, float height) {
    const float box[4] = {(center_x - width / 2) / image_w_, (center_y - height / 2) / image_h_,
                          (center_x + width / 2) / image_w_, (center_y + height / 2) / image_h_};
    const bool clip = param_.prior_box_param().clip();
    for (const float v : box) values_.push_back(clip ? std::clamp(v, 0.0f, 1.0f) : v);
  }

  void add_cell(float center_x, float center_y) {
    const PriorBoxParameter& p = param_.prior_box_param();
    for (int s = 0; s < p.min_size_size(); ++s) {
      // BVLC: not its own, but SSD's: the fractions are lost there too.
      const float size = std::trunc(p.min_size(s));
      add_box(center_x, center_y, size, size);
      if (p.max_size_size() > 0) {
        const float side = std::sqrt(size * std::trunc(p.max_size(s)));
        add_box(center_x, center_y, side, side);
      }
      for (size_t r = 1; r < ratios_.size(); ++r) {
        const float root = std::sqrt(ratios_[r]);
        add_box(center_x, center_y, size * root, size / root);
      }
    }
  }

  void make_boxes() {
    const PriorBoxParameter& p = param_.prior_box_param();
    values_.clear();
    for (int64_t h = 0; h < cells_h_; ++h) {
      for (int64_t w = 0; w < cells_w_; ++w) {
        add_cell((static_cast<float>(w) + p.offset()) * step_w_,
                 (static_cast<float>(h) + p.offset()) * step_h_);
      }
    }
    const size_t count = values_.size();
    for (size_t i = 0; i < count; ++i) {
      const int variance = p.variance_size() == 4 ? static_cast<int>(i % 4) : 0;
      values_.push_back(p.variance_size() == 0 ? 0.1f : p.variance(variance));
    }
  }

  int64_t cells_h_ = 0, cells_w_ = 0;
  float image_h_ = 1, image_w_ = 1, step_h_ = 1, step_w_ = 1;
  std::vector<float> ratios_, values_;
  Tensor boxes_;  // values_ on the device
  bool is_uploaded_ = false;
};

REGISTER_LAYER("PriorBox", PriorBoxLayer)

}  // namespace
}  // namespace crema
