// WindowData (R-CNN): windows on pictures [N, C, crop_size, crop_size] and their classes [N], a
// drawn share of them foreground.
#include "layers/feed_layer.h"

namespace crema {
namespace {

class WindowDataLayer : public FeedLayer {
 public:
  WindowDataLayer(const LayerParameter& param, const LayerContext& context)
      : FeedLayer(param, context, {0, 0, 1, 2}) {}
};

REGISTER_LAYER("WindowData", WindowDataLayer)

}  // namespace
}  // namespace crema
