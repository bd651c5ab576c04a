// MemoryData: top 0 [batch_size, channels, height, width], top 1 the labels; both as set_values
// gave them. BVLC: transform_param is applied to records that are given as Datums or pictures; here
// only finished values can be given, which Caffe too leaves as they are.
#include "layers/memory_data.h"

#include <glog/logging.h>

#include "layers/checks.h"

namespace crema {

Shapes MemoryDataLayer::infer(const Shapes&) {
  const MemoryDataParameter& p = param_.memory_data_param();
  require(
      p.batch_size() > 0 && p.channels() > 0 && p.height() > 0 && p.width() > 0,
      "memory_data_param: batch_size, channels, height and width must all be given and at least 1");
  LOG_IF(WARNING, param_.has_transform_param() && !has_told_)
      << "layer \"" << param_.name() << "\" (MemoryData): transform_param is not applied: values "
      << "are taken as they are given";
  has_told_ = param_.has_transform_param();
  const Shape data{p.batch_size(), p.channels(), p.height(), p.width()};
  require_countable("top", data);
  return {data, Shape{p.batch_size()}};
}

LayerTraits MemoryDataLayer::traits() const {
  return {.has_backward = false, .repeatable = false, .calls_host = true};
}

int64_t MemoryDataLayer::record_size() const {
  const MemoryDataParameter& p = param_.memory_data_param();
  return int64_t{p.channels()} * p.height() * p.width();
}

void MemoryDataLayer::set_values(std::vector<float> data, std::vector<float> labels) {
  const size_t batch = param_.memory_data_param().batch_size();
  require(!labels.empty() && labels.size() % batch == 0, "MemoryData: the ", labels.size(),
          " records must be a multiple of batch_size, ", batch);
  require(data.size() == labels.size() * static_cast<size_t>(record_size()),
          "MemoryData: ", labels.size(), " records of ", record_size(),
          " values need as many values, not ", data.size());
  data_ = std::move(data);
  labels_ = std::move(labels);
  next_ = 0;
}

void MemoryDataLayer::forward(Ops& ops, CTensors, Tensors top) {
  require(!labels_.empty(), "layer \"", param_.name(),
          "\" (MemoryData): has no data; a program must set it before forward");
  ops.upload(data_.data() + next_ * static_cast<size_t>(record_size()), top[0]);
  ops.upload(labels_.data() + next_, top[1]);
  next_ = (next_ + static_cast<size_t>(top[1].count())) % labels_.size();
}

REGISTER_LAYER("MemoryData", MemoryDataLayer)

}  // namespace crema
