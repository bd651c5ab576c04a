// A permutation is drawn anew for each epoch from its own key (Fisher-Yates), so any epoch can be
// made without those before.
#include "feed/record_order.h"

#include <numeric>
#include <utility>

#include "base/philox.h"

namespace crema {

uint64_t RecordOrder::at(uint64_t position) {
  const uint64_t place = global(position) % options_.size;
  if (!options_.shuffle) return place;
  if (epoch(position) != shuffled_epoch_) {
    shuffled_epoch_ = epoch(position);
    shuffle(shuffled_epoch_, order_);
  }
  return order_[place];
}

std::vector<uint32_t> RecordOrder::permutation(uint64_t epoch) const {
  std::vector<uint32_t> order;
  shuffle(epoch, order);
  return order;
}

void RecordOrder::shuffle(uint64_t epoch, std::vector<uint32_t>& order) const {
  order.resize(options_.size);
  std::iota(order.begin(), order.end(), 0u);
  RandomStream random(mix_key(options_.key, epoch));
  for (uint64_t i = options_.size; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

}  // namespace crema
