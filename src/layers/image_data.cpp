// ImageData: picture files named by a list, resized and transformed, with their labels.
#include "layers/feed_layer.h"

namespace crema {
namespace {

class ImageDataLayer : public FeedLayer {
 public:
  ImageDataLayer(const LayerParameter& param, const LayerContext& context)
      : FeedLayer(param, context, {0, 0, 1, 2}) {}
};

REGISTER_LAYER("ImageData", ImageDataLayer)

}  // namespace
}  // namespace crema
