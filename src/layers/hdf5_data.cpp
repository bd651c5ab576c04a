// HDF5Data: rows of HDF5 files, one data set for each top.
#include "layers/feed_layer.h"

namespace crema {
namespace {

class Hdf5DataLayer : public FeedLayer {
 public:
  Hdf5DataLayer(const LayerParameter& param, const LayerContext& context)
      : FeedLayer(param, context, {0, 0, 1, -1}) {}
};

REGISTER_LAYER("HDF5Data", Hdf5DataLayer)

}  // namespace
}  // namespace crema
