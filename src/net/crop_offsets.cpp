// Place u of a blob is place scale u + shift of the blob where its path began, the middles of
// windows standing for their outputs. Composed layer by layer, each axis for itself.
#include "net/crop_offsets.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace crema {
namespace {

struct Line {
  double scale = 1, shift = 0;
  /// The line that first takes u to `inner`, then to this.
  Line after(const Line& inner) const { return {scale * inner.scale, scale * inner.shift + shift}; }
};

using Lines = std::array<Line, 2>;  // height, width

const std::set<std::string>& keeping_types() {
  static const std::set<std::string> types = {
      "AbsVal",  "BN",      "BNLL",  "BatchNorm", "Bias",  "Concat", "Clip",  "Dropout",  "ELU",
      "Eltwise", "Exp",     "LRN",   "Log",       "MVN",   "PReLU",  "Power", "ReLU",     "ReLU6",
      "Scale",   "Sigmoid", "Slice", "Softmax",   "Split", "Swish",  "TanH",  "Threshold"};
  return types;
}

/// Value i of a field that is written once for both axes, once for each, or by its own name.
template <class Values>
double of_axis(const Values& values, int i, bool is_own, uint32_t own, double otherwise) {
  if (is_own) return own;
  if (values.empty()) return otherwise;
  return values.Get(values.size() > 1 ? i : 0);
}

Lines window_lines(const ConvolutionParameter& p, bool is_transposed) {
  Lines lines;
  for (int i = 0; i < 2; ++i) {
    const bool h = i == 0;
    const double kernel = of_axis(p.kernel_size(), i, h ? p.has_kernel_h() : p.has_kernel_w(),
                                  h ? p.kernel_h() : p.kernel_w(), 1);
    const double pad =
        of_axis(p.pad(), i, h ? p.has_pad_h() : p.has_pad_w(), h ? p.pad_h() : p.pad_w(), 0);
    const double stride = of_axis(p.stride(), i, h ? p.has_stride_h() : p.has_stride_w(),
                                  h ? p.stride_h() : p.stride_w(), 1);
    const double dilation = of_axis(p.dilation(), i, false, 0, 1);
    const double middle = dilation * (kernel - 1) / 2 - pad;
    lines[i] = is_transposed ? Line{1 / stride, -middle / stride} : Line{stride, middle};
  }
  return lines;
}

Lines window_lines(const PoolingParameter& p) {
  const double kernel[] = {p.has_kernel_h() ? p.kernel_h() : 1.0 * p.kernel_size(),
                           p.has_kernel_w() ? p.kernel_w() : 1.0 * p.kernel_size()};
  const double pad[] = {p.has_pad_h() ? p.pad_h() : 1.0 * p.pad(),
                        p.has_pad_w() ? p.pad_w() : 1.0 * p.pad()};
  const double stride[] = {p.has_stride_h() ? p.stride_h() : 1.0 * p.stride(),
                           p.has_stride_w() ? p.stride_w() : 1.0 * p.stride()};
  return {Line{stride[0], (kernel[0] - 1) / 2 - pad[0]},
          Line{stride[1], (kernel[1] - 1) / 2 - pad[1]}};
}

/// How a layer takes places of its tops to places of its first bottom; nullopt: it says nothing.
std::optional<Lines> lines_of(const LayerParameter& layer) {
  const std::string& type = layer.type();
  if (type == "Convolution" || type == "DepthwiseConvolution" || type == "ConvolutionDepthwise") {
    return window_lines(layer.convolution_param(), false);
  }
  if (type == "Deconvolution") return window_lines(layer.convolution_param(), true);
  if (type == "Pooling" && !layer.pooling_param().global_pooling()) {
    return window_lines(layer.pooling_param());
  }
  if (type == "Crop" && layer.crop_param().axis() == 2) {
    const auto& offset = layer.crop_param().offset();
    return Lines{Line{1, of_axis(offset, 0, false, 0, 0)},
                 Line{1, of_axis(offset, 1, false, 0, 0)}};
  }
  if (keeping_types().count(type) > 0) return Lines{};
  return std::nullopt;
}

/// The blobs that a blob, as layer `before` reads it, comes from, itself the first, each with the
/// lines that take the blob's places there.
std::map<std::string, Lines> path_of(const NetParameter& net, int before, std::string blob) {
  Lines lines;
  std::map<std::string, Lines> path = {{blob, lines}};
  for (int i = before - 1; i >= 0; --i) {
    const LayerParameter& layer = net.layer(i);
    const bool makes = std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end();
    if (!makes || layer.bottom_size() == 0) continue;
    const std::optional<Lines> step = lines_of(layer);
    if (!step) break;
    for (size_t k = 0; k < 2; ++k) lines[k] = (*step)[k].after(lines[k]);
    blob = layer.bottom(0);
    path.try_emplace(blob, lines);
  }
  return path;
}

}  // namespace

std::optional<std::array<int64_t, 2>> aligned_offsets(const NetParameter& net, int index) {
  const LayerParameter& crop = net.layer(index);
  if (crop.bottom_size() != 2) return std::nullopt;
  const auto whole = path_of(net, index, crop.bottom(0));
  const auto wanted = path_of(net, index, crop.bottom(1));
  for (const auto& [blob, target] : wanted) {
    const auto shared = whole.find(blob);
    if (shared == whole.end()) continue;
    std::array<int64_t, 2> offsets{};
    for (size_t i = 0; i < 2; ++i) {
      const Line &from = shared->second[i], &to = target[i];
      if (std::abs(from.scale - to.scale) > 1e-6) return std::nullopt;
      offsets[i] = std::lround((to.shift - from.shift) / from.scale);
    }
    return offsets;
  }
  return std::nullopt;
}

}  // namespace crema
