// MultiBoxLoss (Liu et al., "SSD", 2016, section 2.2): priors are matched to the true boxes; loss =
// (loc_weight * sum of the distances of the matched codes + sum of the class losses of the matched
// priors and of the negatives that are worst) / divisor. Bottoms: codes [N, P L 4], scores [N, P
// C], priors [1, 2, P 4], true boxes [1, 1, G, 8].
#include <algorithm>
#include <cmath>

#include "layers/checks.h"
#include "layers/ground_truth.h"
#include "ops/kernels/smooth_l1_loss.h"

namespace crema {
namespace {

constexpr double kLargestLoss =
    87.3365447504;  // -log of the smallest float, as SoftmaxWithLoss has

class MultiBoxLossLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {4, 4, 1, 1}; }
  bool is_loss() const override { return true; }
  bool allow_force_backward(int bottom) const override { return bottom < 2; }

  Shapes infer(const Shapes& bottom) override {
    const MultiBoxLossParameter& p = fields();
    require(p.num_classes() >= 1, "num_classes: must be given and at least 1");
    require(p.overlap_threshold() > 0, "overlap_threshold: must be above 0");
    require(p.neg_pos_ratio() >= 0, "neg_pos_ratio: must not be negative");
    refuse_fields();
    require(bottom[2].axes() >= 3 && bottom[2][1] == 2 && bottom[2].count(2) % 4 == 0,
            bottom_text(param_, 2), " of shape ", bottom[2],
            " must be priors, [1, 2, 4 for each prior]");
    require(bottom[3].axes() == 4 && bottom[3][3] == kTruthRow, bottom_text(param_, 3),
            " of shape ", bottom[3], " must be true boxes, [1, 1, G, 8]");
    batch_ = bottom[0].dim_or_one(0);
    priors_ = bottom[2].count(2) / 4;
    classes_ = p.num_classes();
    locations_ = p.share_location() ? 1 : classes_;
    require(bottom[0].count() == batch_ * priors_ * locations_ * 4, bottom_text(param_, 0),
            " of shape ", bottom[0], " must hold 4 numbers for each of ", priors_, " priors",
            locations_ > 1 ? " and each class" : "");
    require(bottom[1].count() == batch_ * priors_ * classes_, bottom_text(param_, 1), " of shape ",
            bottom[1], " must hold ", classes_, " scores for each of ", priors_, " priors");
    return {Shape{}};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.host_only = true;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    refuse_gradient(param_, context, 2);
    refuse_gradient(param_, context, 3);
    const auto size = [](int64_t n) { return static_cast<size_t>(n); };
    codes_.resize(size(batch_ * priors_ * locations_ * 4));
    scores_.resize(size(batch_ * priors_ * classes_));
    dcodes_.resize(codes_.size());
    dscores_.resize(scores_.size());
    prior_values_.resize(size(priors_ * 8));
    truth_values_.resize(size(context.bottom[3].count()));
    match_.resize(size(batch_ * locations_ * priors_));
    overlap_.resize(match_.size());
    losses_.resize(size(priors_));
    return {};
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    ops.download(bottom[0], codes_.data());
    ops.download(bottom[1], scores_.data());
    ops.download(bottom[2], prior_values_.data());
    ops.download(bottom[3], truth_values_.data());
    read_boxes();
    std::fill(dcodes_.begin(), dcodes_.end(), 0.0f);
    std::fill(dscores_.begin(), dscores_.end(), 0.0f);
    matches_ = 0;
    for (int64_t image = 0; image < batch_; ++image) match(image);
    double location = 0, confidence = 0;
    for (int64_t image = 0; image < batch_; ++image) {
      location += location_loss(image);
      confidence += class_loss(image);
    }
    const double total =
        (counts(0) ? fields().loc_weight() * location : 0) + (counts(1) ? confidence : 0);
    const auto loss = static_cast<float>(total / divisor());
    ops.upload(&loss, top[0]);
  }

  void backward(Ops& ops, const BackwardArgs& args) override {
    if (clear_without_loss(ops, args)) return;
    float dloss = 0;
    ops.download(args.dtop[0], &dloss);
    const auto scale = static_cast<float>(dloss / divisor());
    put_gradient(ops, dcodes_, counts(0) ? scale * fields().loc_weight() : 0, args.dbottom[0]);
    put_gradient(ops, dscores_, counts(1) ? scale : 0, args.dbottom[1]);
  }

 private:
  const MultiBoxLossParameter& fields() const { return param_.multibox_loss_param(); }
  bool counts(int bottom) const {
    return param_.propagate_down_size() <= bottom || param_.propagate_down(bottom);
  }
  bool mines() const {
    const MultiBoxLossParameter& p = fields();
    if (!p.has_mining_type() && p.has_do_neg_mining()) return p.do_neg_mining();
    return p.mining_type() != MultiBoxLossParameter::NONE;
  }

  void refuse_fields() const {
    const MultiBoxLossParameter& p = fields();
    require(p.mining_type() != MultiBoxLossParameter::HARD_EXAMPLE,
            "mining_type: HARD_EXAMPLE is not supported, use MAX_NEGATIVE or NONE");
    require(!p.bp_inside(), "bp_inside: true is not supported, leave it out");
    require(!p.ignore_difficult_gt(),
            "ignore_difficult_gt: true is not supported, use_difficult_gt: false leaves them out");
  }

  void read_boxes() {
    truth_.clear();
    read_truth(truth_values_, static_cast<int>(classes_),
               static_cast<int>(fields().background_label_id()), &truth_);
    prior_boxes_.clear();
    for (int64_t prior = 0; prior < priors_; ++prior) {
      const float* c = prior_values_.data() + prior * 4;
      prior_boxes_.push_back({c[0], c[1], c[2], c[3]});
    }
  }

  const float* variance(int64_t prior) const {
    return prior_values_.data() + (priors_ + prior) * 4;
  }
  BoxCoder coder() const { return {fields().code_type(), fields().encode_variance_in_target()}; }
  size_t code_place(int64_t image, int64_t prior, int64_t location) const {
    return static_cast<size_t>(((image * priors_ + prior) * locations_ + location) * 4);
  }
  int* matches_of(int64_t image, int64_t location) {
    return match_.data() + (image * locations_ + location) * priors_;
  }
  float* overlaps_of(int64_t image, int64_t location) {
    return overlap_.data() + (image * locations_ + location) * priors_;
  }
  int class_of(int true_box) const {
    if (fields().map_object_to_agnostic())
      return static_cast<int>(fields().background_label_id()) + 1;
    return truth_[static_cast<size_t>(true_box)].label;
  }

  /// match_ and overlap_ of one picture, indices into truth_.
  void match(int64_t image) {
    for (int64_t location = 0; location < locations_; ++location) {
      const bool by_class = locations_ > 1;
      boxes_.clear();
      places_.clear();
      for (size_t i = 0; i < truth_.size(); ++i) {
        const TrueBox& t = truth_[i];
        if (t.image != image || (t.is_difficult && !fields().use_difficult_gt())) continue;
        if (by_class && !fields().use_prior_for_matching() && t.label != location) continue;
        boxes_.push_back(t.box);
        places_.push_back(static_cast<int>(i));
      }
      match_location(image, location);
    }
  }

  void match_location(int64_t image, int64_t location) {
    int* match = matches_of(image, location);
    const MatchRule rule{fields().match_type() == MultiBoxLossParameter::PER_PREDICTION,
                         fields().overlap_threshold(), fields().ignore_cross_boundary_bbox()};
    if (fields().use_prior_for_matching()) {
      matcher_.run(boxes_, prior_boxes_, rule, match, overlaps_of(image, location));
    } else {
      decoded_.clear();
      for (int64_t prior = 0; prior < priors_; ++prior) {
        decoded_.push_back(coder().decode(codes_.data() + code_place(image, prior, location),
                                          prior_boxes_[static_cast<size_t>(prior)],
                                          variance(prior)));
      }
      matcher_.run(boxes_, decoded_, rule, match, overlaps_of(image, location));
    }
    for (int64_t prior = 0; prior < priors_; ++prior) {
      if (match[prior] < 0) continue;
      match[prior] = places_[static_cast<size_t>(match[prior])];
      if (locations_ > 1 && truth_[static_cast<size_t>(match[prior])].label != location) {
        match[prior] = -1;
        continue;
      }
      ++matches_;
    }
  }

  double location_loss(int64_t image) {
    const bool smooth = fields().loc_loss_type() == MultiBoxLossParameter::SMOOTH_L1;
    double loss = 0;
    for (int64_t location = 0; location < locations_; ++location) {
      const int* match = matches_of(image, location);
      for (int64_t prior = 0; prior < priors_; ++prior) {
        if (match[prior] < 0) continue;
        float target[4];
        coder().encode(truth_[static_cast<size_t>(match[prior])].box,
                       prior_boxes_[static_cast<size_t>(prior)], variance(prior), target);
        const size_t place = code_place(image, prior, location);
        for (size_t i = 0; i < 4; ++i) {
          const float d = codes_[place + i] - target[i];
          loss += smooth ? smooth_l1(d, 1) : 0.5f * d * d;
          dcodes_[place + i] = smooth ? smooth_l1_slope(d, 1) : d;
        }
      }
    }
    return loss;
  }

  /// The class that a prior should have: its box's, else the background.
  int target_class(int64_t image, int64_t prior) {
    for (int64_t location = 0; location < locations_; ++location) {
      const int box = matches_of(image, location)[prior];
      if (box >= 0) return class_of(box);
    }
    return static_cast<int>(fields().background_label_id());
  }

  /// The loss of one prior's scores; with add also its gradient, into dscores_.
  double score_loss(int64_t image, int64_t prior, int target, bool add) {
    const auto place = static_cast<size_t>((image * priors_ + prior) * classes_);
    const float* x = scores_.data() + place;
    float* dx = dscores_.data() + place;
    double loss = 0;
    if (fields().conf_loss_type() == MultiBoxLossParameter::LOGISTIC) {
      for (int64_t c = 0; c < classes_; ++c) {
        const double v = x[c], wanted = c == target ? 1 : 0;
        loss += std::max(v, 0.0) - v * wanted + std::log1p(std::exp(-std::fabs(v)));
        if (add) dx[c] += static_cast<float>(1 / (1 + std::exp(-v)) - wanted);
      }
      return loss;
    }
    const double largest = *std::max_element(x, x + classes_);
    double sum = 0;
    for (int64_t c = 0; c < classes_; ++c) sum += std::exp(x[c] - largest);
    for (int64_t c = 0; add && c < classes_; ++c) {
      dx[c] += static_cast<float>(std::exp(x[c] - largest) / sum - (c == target ? 1 : 0));
    }
    if (target < 0 || target >= classes_) return 0;
    return std::min(std::log(sum) - (x[target] - largest), kLargestLoss);
  }

  double class_loss(int64_t image) {
    double loss = 0;
    if (!mines()) {
      for (int64_t prior = 0; prior < priors_; ++prior) {
        loss += score_loss(image, prior, target_class(image, prior), true);
      }
      return loss;
    }
    for (int64_t prior = 0; prior < priors_; ++prior) {
      losses_[static_cast<size_t>(prior)] =
          score_loss(image, prior, target_class(image, prior), false);
    }
    const int background = static_cast<int>(fields().background_label_id());
    for (int64_t location = 0; location < locations_; ++location) {
      const int* match = matches_of(image, location);
      mine(image, location);
      for (int64_t prior = 0; prior < priors_; ++prior) {
        if (match[prior] >= 0) loss += score_loss(image, prior, class_of(match[prior]), true);
      }
      for (const int prior : negatives_) loss += score_loss(image, prior, background, true);
    }
    return loss;
  }

  /// negatives_: of the priors that overlap no box much, those of the highest loss, neg_pos_ratio
  /// for each matched one.
  void mine(int64_t image, int64_t location) {
    const int* match = matches_of(image, location);
    const float* overlap = overlaps_of(image, location);
    int64_t positives = 0;
    negatives_.clear();
    for (int64_t prior = 0; prior < priors_; ++prior) {
      if (match[prior] >= 0) ++positives;
      if (match[prior] == -1 && overlap[prior] < fields().neg_overlap()) {
        negatives_.push_back(static_cast<int>(prior));
      }
    }
    const double wanted = static_cast<double>(positives) * fields().neg_pos_ratio();
    if (wanted >= static_cast<double>(negatives_.size())) return;
    std::sort(negatives_.begin(), negatives_.end(), [&](int a, int b) {
      const double first = losses_[static_cast<size_t>(a)],
                   second = losses_[static_cast<size_t>(b)];
      return first > second || (first == second && a < b);
    });
    negatives_.resize(static_cast<size_t>(wanted));
  }

  double divisor() const {
    const LossParameter& p = param_.loss_param();
    LossParameter::NormalizationMode mode = p.normalization();
    if (!p.has_normalization() && p.has_normalize()) {
      mode = p.normalize() ? LossParameter::VALID : LossParameter::BATCH_SIZE;
    }
    double count = 1;
    if (mode == LossParameter::FULL) count = static_cast<double>(batch_ * priors_);
    if (mode == LossParameter::VALID) count = static_cast<double>(matches_);
    if (mode == LossParameter::BATCH_SIZE) count = static_cast<double>(batch_);
    if (mode == LossParameter::PRE_FIXED) count = p.pre_fixed_normalizer();
    return std::max(1.0, count);
  }

  void put_gradient(Ops& ops, const std::vector<float>& values, float scale, const Grad& dx) {
    if (!dx) return;
    scaled_.assign(values.begin(), values.end());
    for (float& v : scaled_) v *= scale;
    ops.upload(scaled_.data(), dx.t);
  }

  int64_t batch_ = 0, priors_ = 0, classes_ = 1, locations_ = 1, matches_ = 0;
  std::vector<float> codes_, scores_, dcodes_, dscores_, prior_values_, truth_values_, scaled_;
  std::vector<TrueBox> truth_;
  std::vector<Box> prior_boxes_, boxes_, decoded_;
  std::vector<int> places_, match_, negatives_;
  std::vector<float> overlap_;
  std::vector<double> losses_;
  Matcher matcher_;
};

REGISTER_LAYER("MultiBoxLoss", MultiBoxLossLayer)

}  // namespace
}  // namespace crema
