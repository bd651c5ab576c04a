// RandomStream: the host-side reading of a Philox counter sequence.
#include "base/philox.h"

#include <cmath>

namespace crema {

uint32_t RandomStream::next() {
  if (used_ == 4) {
    block_ = philox(key_, counter_++);
    used_ = 0;
  }
  return block_.v[used_++];
}

uint64_t RandomStream::below(uint64_t bound) {
  const uint64_t word = (uint64_t{next()} << 32) | next();
  return static_cast<uint64_t>((static_cast<unsigned __int128>(word) * bound) >> 64);
}

double RandomStream::uniform() {
  const uint64_t word = (uint64_t{next()} << 32) | next();
  return static_cast<double>(word >> 11) * 0x1p-53;
}

double RandomStream::gaussian() {
  const double u = 1.0 - uniform(), v = uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * M_PI * v);
}

}  // namespace crema
