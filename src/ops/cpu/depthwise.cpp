// The plan; packed weights are [taps, channels], turned round for the data gradient where the step
// is 1.
#include "ops/cpu/depthwise.h"

#include "ops/cpu/conv_depthwise.h"
#include "ops/cpu/dnnl_util.h"
#include "ops/cpu/parallel.h"

namespace crema {
namespace {

constexpr int64_t kTaps = 9;

class DepthwisePlan : public ConvPlan {
 public:
  DepthwisePlan(const Isa& isa, const ConvDesc& desc) : isa_(isa), desc_(desc), params_(isa, desc) {
    const Shape &x = desc.x.shape, &y = desc.y.shape;
    forward_ = {.batch = x[0],
                .channels = x[1],
                .height = x[2],
                .width = x[3],
                .out_height = y[2],
                .out_width = y[3],
                .stride = desc.stride[0],
                .pad = {desc.pad[0], desc.pad[1]},
                .spreads = false,
                .accumulate = false,
                .slope = desc.act.kind == ActKind::relu ? desc.act.slope : 1.0f,
                .x = nullptr,
                .w = nullptr,
                .bias = nullptr,
                .y = nullptr};
    data_ = forward_;
    data_.height = y[2];
    data_.width = y[3];
    data_.out_height = x[2];
    data_.out_width = x[3];
    data_.slope = 1;
    data_.spreads = forward_.stride == 2;
    for (int64_t& pad : data_.pad) pad = data_.spreads ? pad : 2 - pad;
  }

  Needs needs() const override {
    const auto bytes = sizeof(float) * static_cast<size_t>(kTaps * forward_.channels);
    return {.scratch = desc_.train ? params_.scratch_bytes() : 0,
            .packed = turns() ? 2 * bytes : bytes};
  }

  void bind(const Workspace& workspace) override {
    scratch_ = workspace.scratch;
    weights_ = part(workspace.packed, 0);
  }

  void weights_changed(CTensor w) override {
    const int64_t channels = forward_.channels;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < kTaps; ++t) {
        const float v = w.f32()[c * kTaps + t];
        weights_[t * channels + c] = v;
        if (turns()) weights_[(2 * kTaps - 1 - t) * channels + c] = v;
      }
    }
  }

  void forward(CTensor x, CTensor, CTensor b, CTensor, Tensor y) override {
    DepthwiseArgs args = forward_;
    args.x = x.f32();
    args.y = y.f32();
    args.w = weights_;
    args.bias = desc_.bias ? b.f32() : nullptr;
    run(args);
  }

  void backward_data(CTensor dy, CTensor, Grad dx) override {
    if (!dx) return;
    DepthwiseArgs args = data_;
    args.x = dy.f32();
    args.y = dx.t.f32();
    args.accumulate = dx.how == Write::accumulate;
    args.w = turns() ? weights_ + kTaps * args.channels : weights_;
    run(args);
  }

  void backward_params(CTensor x, CTensor dy, Grad dw, Grad db) override {
    if (dw || db) params_.run(x.f32(), dy.f32(), dw, db, part(scratch_, 0));
  }

 private:
  bool turns() const { return desc_.train && !data_.spreads; }

  void run(const DepthwiseArgs& args) const {
    const int64_t rows = args.batch * args.out_height;
    parallel_ranges(rows, 2 * rows * args.out_width * args.channels, 1,
                    [&](int64_t begin, int64_t end) { isa_.depthwise(args, begin, end); });
  }

  const Isa& isa_;
  ConvDesc desc_;
  ConvDepthwise params_;
  DepthwiseArgs forward_{}, data_{};
  Tensor scratch_;
  float* weights_ = nullptr;
};

}  // namespace

bool depthwise_suits(const Isa& isa, const ConvDesc& nhwc) {
  if (nhwc.x.dtype != DType::f32 || nhwc.pad.axes != 2 || !ConvDepthwise::suits(isa, nhwc) ||
      nhwc.residual)
    return false;
  if (nhwc.act.kind != ActKind::none && nhwc.act.kind != ActKind::relu) return false;
  const int64_t stride = nhwc.stride[0];
  bool suits = stride == 1 || stride == 2;
  for (int axis = 0; axis < 2; ++axis) {
    suits = suits && nhwc.w.shape[axis + 2] == 3 && nhwc.stride[axis] == stride &&
            nhwc.dilation[axis] == 1 && nhwc.pad[axis] <= 2;
  }
  return suits;
}

std::unique_ptr<ConvPlan> make_depthwise_conv(const Isa& isa, const ConvDesc& nhwc) {
  return std::make_unique<DepthwisePlan>(isa, nhwc);
}

}  // namespace crema
