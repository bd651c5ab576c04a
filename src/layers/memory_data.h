// MemoryData: batches that a program hands over.
#pragma once

#include <vector>

#include "layers/layer.h"

namespace crema {

class MemoryDataLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {0, 0, 2, 2}; }
  Shapes infer(const Shapes& bottom) override;
  LayerTraits traits() const override;
  /// Takes the next batch_size records, and begins again after the last. Throws Error while none is
  /// set.
  void forward(Ops& ops, CTensors bottom, Tensors top) override;

  /// Replaces all records: a multiple of batch_size labels, and channels * height * width values
  /// for each. Throws Error otherwise.
  void set_values(std::vector<float> data, std::vector<float> labels);

 private:
  int64_t record_size() const;
  std::vector<float> data_, labels_;
  size_t next_ = 0;
  bool has_told_ = false;  // that transform_param is not applied
};

}  // namespace crema
