// Each rank adds up one stretch for all of them and writes it to all of them.
#include "parallel/communicator.h"

#include <algorithm>

namespace crema {

void Communicator::sum(Ops& ops, const Tensor& x) {
  if (ranks() == 1) return;
  const int64_t count = x.count();
  float* own = x.f32();
  if (ops.shares_host_memory()) {
    ops.synchronize();
  } else {
    staging_.resize(static_cast<size_t>(count));
    own = staging_.data();
    ops.download(x, own);
  }
  const std::vector<void*> all = group_.exchange(rank_, own);
  const int64_t begin = count * rank_ / ranks(), end = count * (rank_ + 1) / ranks();
  for (int64_t i = begin; i < end; ++i) {
    float sum = 0;
    for (void* const values : all) sum += static_cast<const float*>(values)[i];
    for (void* const values : all) static_cast<float*>(values)[i] = sum;
  }
  group_.meet();
  if (!ops.shares_host_memory()) ops.upload(own, x);
}

void Communicator::sum(std::span<double> values) {
  if (ranks() == 1) return;
  own_.assign(values.begin(), values.end());
  const std::vector<void*> all = group_.exchange(rank_, own_.data());
  std::fill(values.begin(), values.end(), 0.0);
  for (void* const others : all) {
    for (size_t i = 0; i < values.size(); ++i) values[i] += static_cast<const double*>(others)[i];
  }
  group_.meet();  // own_ may change from here on
}

}  // namespace crema
