// Direct convolution is counted, whatever algorithm runs.
#include "work.h"

#include <string>

namespace crema {

int64_t multiply_adds(Layer& layer, const Shapes& bottom, const Shapes& top) {
  const std::string& type = layer.param().type();
  if (bottom.empty() || top.empty()) return 0;
  const auto weights = [&](size_t i) { return layer.params()[i].shape; };
  if (layer.params().empty()) {
    const bool is_elementwise = type == "Eltwise" || type == "LRN" || type == "Scale";
    return is_elementwise ? top[0].count() : 0;
  }
  if (type == "Deconvolution") {  // every input element meets all weights of its channel
    const Shape w = weights(0);
    int64_t count = 0;
    for (const Shape& x : bottom) count += x.count() * w.count(1);
    return count;
  }
  if (type.find("Convolution") != std::string::npos) {  // depthwise kinds too
    const Shape w = weights(0);
    int64_t count = 0;
    for (const Shape& y : top) count += y.count() * w.count(1);
    return count;
  }
  if (type == "InnerProduct") {
    const int64_t outputs = layer.param().inner_product_param().num_output();
    return outputs == 0 ? 0 : top[0].count() / outputs * weights(0).count();
  }
  if (type == "LSTM" || type == "RNN") {
    int64_t count = 0;
    for (const Param& param : layer.params()) {
      if (param.shape.axes() == 2) count += param.shape.count();
    }
    return count * bottom[0].count(0, 2);
  }
  const bool is_elementwise = type == "Scale" || type == "BatchNorm" || type == "PReLU";
  return is_elementwise ? top[0].count() : 0;
}

}  // namespace crema
