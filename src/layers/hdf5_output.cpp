// HDF5Output: data sets `data` and `label` of everything that the two bottoms held, batch after
// batch. BVLC: a second forward dies because the data sets exist; here each forward appends. The
// file is written whenever the number of batches has doubled, and at the end.
#include <glog/logging.h>

#include "base/file.h"
#include "io/hdf5.h"
#include "layers/common.h"

namespace crema {
namespace {

class Hdf5OutputLayer : public Layer {
 public:
  using Layer::Layer;
  ~Hdf5OutputLayer() override {
    try {
      if (written_ != batches_) write();
    } catch (const Error& error) {
      LOG(ERROR) << "layer \"" << param_.name() << "\" (HDF5Output): " << error.what();
    }
  }

  Arity arity() const override { return {2, 2, 0, 0}; }

  Shapes infer(const Shapes& bottom) override {
    require(!param_.hdf5_output_param().file_name().empty(),
            "hdf5_output_param: needs a file_name");
    require(bottom[0].axes() > 0 && bottom[1].axes() > 0 && bottom[0][0] == bottom[1][0],
            "data and label must have as many samples: shapes ", bottom[0], " and ", bottom[1]);
    return {};
  }

  LayerTraits traits() const override {
    LayerTraits traits;
    traits.has_backward = traits.repeatable = false;
    traits.host_only = true;
    return traits;
  }

  Needs plan(Ops&, const PlanContext&) override {
    require_writable(file());
    return {};
  }

  void forward(Ops& ops, CTensors bottom, Tensors) override {
    data_.append(ops, bottom[0]);
    label_.append(ops, bottom[1]);
    ++batches_;
    if ((batches_ & (batches_ - 1)) == 0) write();
  }

 private:
  /// The batches of one bottom, one after another.
  struct Collected {
    Shape shape;
    std::vector<float> values;
    void append(Ops& ops, const CTensor& batch) {
      const int64_t samples = shape.axes() > 0 ? shape[0] : 0;
      const size_t before = values.size();
      values.resize(before + static_cast<size_t>(batch.count()));
      ops.download(batch, values.data() + before);
      shape = batch.shape();
      shape[0] += samples;
    }
  };

  const std::string& file() const { return param_.hdf5_output_param().file_name(); }

  void write() {
    write_atomically(file(), [&](const std::string& path) {
      Hdf5File out = Hdf5File::create(path);
      out.write("data", data_.shape, data_.values.data());
      out.write("label", label_.shape, label_.values.data());
      out.close();
    });
    written_ = batches_;
  }

  Collected data_, label_;
  uint64_t batches_ = 0, written_ = 0;
};

REGISTER_LAYER("HDF5Output", Hdf5OutputLayer)

}  // namespace
}  // namespace crema
