// CTCGreedyDecoder (Graves et al. 2006, best path): the best class of each step, blanks left out
// and equal neighbours merged, [N, T], -1 behind the last. Bottoms: scores [T, N, C], indicators
// [T, N] (0 begins a sequence). With labels [L, N] as a third, a second top is the accuracy: the
// mean over N of 1 - edit distance / the longer of the two lengths.
#include <algorithm>

#include "layers/checks.h"
#include "layers/common.h"
#include "ops/kernels/ctc.h"

namespace crema {
namespace {

class CtcGreedyDecoderLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 3, 1, 2}; }

  Shapes infer(const Shapes& bottom) override {
    const Shape& x = bottom[0];
    const int blank = param_.ctc_decoder_param().blank_index();
    require(x.axes() == 3, bottom_text(param_, 0), " of shape ", x,
            " must have three axes: steps, sequences, classes");
    require(bottom[1].count() == x[0] * x[1], bottom_text(param_, 1), " of shape ", bottom[1],
            " must hold an indicator for each of ", x[0], " x ", x[1], " steps");
    require(blank >= -1 && blank < x[2], "blank_index: ", blank, " must be in 0..", x[2] - 1,
            ", or -1 for the last class");
    require(param_.top_size() < 2 || bottom.size() == 3,
            "a second top, the accuracy, needs a third bottom, the labels");
    if (bottom.size() == 3) {
      require(bottom[2].axes() >= 2 && bottom[2].count() == bottom[2][0] * x[1],
              bottom_text(param_, 2), " of shape ", bottom[2], " must be labels [L, ", x[1], ']');
    }
    x_ = x;
    Shapes tops{Shape{x[1], x[0]}};
    if (param_.top_size() > 1) tops.emplace_back();
    return tops;
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.has_backward = false;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.host_only = param_.top_size() > 1;
    return traits;
  }

  Needs plan(Ops&, const PlanContext& context) override {
    if (param_.top_size() > 1) {
      labels_.resize(static_cast<size_t>(context.bottom[2].count()));
      decoded_.resize(static_cast<size_t>(x_[0] * x_[1]));
      distances_.resize(static_cast<size_t>(x_[0]) + 1);
    }
    return {};
  }

  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    const CTCDecoderParameter& p = param_.ctc_decoder_param();
    const int blank = p.blank_index() < 0 ? static_cast<int>(x_[2]) - 1 : p.blank_index();
    run(ops,
        CtcGreedy{bottom[0].f32(), bottom[1].f32(), top[0].f32(), x_[0], x_[1], x_[2], blank,
                  p.ctc_merge_repeated()},
        x_[1]);
    if (top.size() < 2) return;
    ops.download(top[0], decoded_.data());
    ops.download(bottom[2], labels_.data());
    const int64_t most = bottom[2].shape()[0];
    double sum = 0;
    for (int64_t n = 0; n < x_[1]; ++n) sum += accuracy_of(n, most);
    const auto mean = static_cast<float>(sum / static_cast<double>(std::max<int64_t>(1, x_[1])));
    ops.upload(&mean, top[1]);
  }

 private:
  double accuracy_of(int64_t n, int64_t most) {
    const float* found = decoded_.data() + n * x_[0];
    int64_t found_count = 0, count = 0;
    while (found_count < x_[0] && found[found_count] >= 0) ++found_count;
    while (count < most && labels_[static_cast<size_t>(count * x_[1] + n)] >= 0) ++count;
    const int64_t longest = std::max(found_count, count);
    if (longest == 0) return 1;
    const int64_t distance = edit_distance(found, found_count, n, count);
    return 1 - static_cast<double>(distance) / static_cast<double>(longest);
  }

  /// Insertions, deletions and replacements (Levenshtein), row by row of the labels.
  int64_t edit_distance(const float* found, int64_t found_count, int64_t n, int64_t count) {
    for (int64_t i = 0; i <= found_count; ++i) distances_[static_cast<size_t>(i)] = i;
    for (int64_t l = 0; l < count; ++l) {
      const float label = labels_[static_cast<size_t>(l * x_[1] + n)];
      int64_t diagonal = distances_[0];
      distances_[0] = l + 1;
      for (int64_t i = 1; i <= found_count; ++i) {
        int64_t& cell = distances_[static_cast<size_t>(i)];
        const int64_t replaced = diagonal + (found[i - 1] == label ? 0 : 1);
        diagonal = cell;
        cell = std::min({replaced, cell + 1, distances_[static_cast<size_t>(i - 1)] + 1});
      }
    }
    return distances_[static_cast<size_t>(found_count)];
  }

  Shape x_;
  std::vector<float> labels_, decoded_;
  std::vector<int64_t> distances_;
};

REGISTER_LAYER("CTCGreedyDecoder", CtcGreedyDecoderLayer)

}  // namespace
}  // namespace crema
