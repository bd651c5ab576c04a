// Data: pictures and labels from a database of Datums, in key order or shuffled anew each epoch.
// BVLC: has no shuffle, and starts again at record 0 when training resumes.
#include "layers/feed_layer.h"

namespace crema {
namespace {

class DataLayer : public FeedLayer {
 public:
  DataLayer(const LayerParameter& param, const LayerContext& context)
      : FeedLayer(param, context, {0, 0, 1, 2}) {}
};

REGISTER_LAYER("Data", DataLayer)

}  // namespace
}  // namespace crema
