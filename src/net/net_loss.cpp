// The loss on its way to the host: waited for at once, or read beside the backward that follows, so
// that the device does not wait for the host.
#include <limits>
#include <numeric>

#include "net/net_impl.h"

namespace crema {
namespace {

constexpr size_t kLossesAt = 64;  // behind the fault
static_assert(sizeof(Fault) <= kLossesAt);

}  // namespace

float Net::Impl::total_loss() {
  double loss = 0;
  for (int v : loss_values) {
    const Tensor tensor = data(v);
    ops->download(tensor, loss_staging.data());
    const double sum =
        std::accumulate(loss_staging.begin(), loss_staging.begin() + tensor.count(), 0.0);
    loss += sum * graph.values[v].loss_weight;
  }
  return static_cast<float>(loss);
}

void Net::Impl::make_loss_reading() {
  if (!ops->can_record()) return;  // call by call there is no queue to fill
  loss_reading.side = ops->side_queue();
  int64_t count = 0;
  for (int v : loss_values) count += data(v).count();
  loss_reading.memory =
      ops->allocate(kLossesAt + static_cast<size_t>(count) * sizeof(float), Memory::pinned_host);
}

void Net::Impl::begin_loss_reading() {
  SideQueue& side = *loss_reading.side;
  side.follow();
  char* host = static_cast<char*>(loss_reading.memory.get());
  const TensorDesc fault{Shape{static_cast<int64_t>(sizeof(Fault))}, DType::u8, Layout::nchw};
  side.download({ops->fault(), fault}, host);
  host += kLossesAt;
  for (int v : loss_values) {
    side.download(data(v), host);
    host += data(v).desc.bytes();
  }
}

/// As check_fault() and total_loss().
float Net::Impl::finish_loss_reading() {
  loss_reading.side->synchronize();
  const char* host = static_cast<const char*>(loss_reading.memory.get());
  const bool is_faulty = reinterpret_cast<const Fault*>(host)->set != 0;
  if (is_faulty && !check_fault()) return std::numeric_limits<float>::quiet_NaN();
  const float* values = reinterpret_cast<const float*>(host + kLossesAt);
  double loss = 0;
  for (int v : loss_values) {
    const int64_t count = data(v).count();
    loss += std::accumulate(values, values + count, 0.0) * graph.values[v].loss_weight;
    values += count;
  }
  return static_cast<float>(loss);
}

}  // namespace crema
