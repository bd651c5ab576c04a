// The matrix product that plans share: any orientation, with biases and an activation on the way
// out. Threads split c; each packs in a buffer of its own.
#pragma once

#include <vector>

#include "ops/cpu/isa/isa.h"

namespace crema {

class Gemm {
 public:
  explicit Gemm(const Isa& isa);
  /// Decides packing and orientation; args.packs_a is set here. Same bits for any number of
  /// threads.
  void run(GemmArgs args) const;

 private:
  const Isa& isa_;
  std::vector<std::shared_ptr<float>> buffers_;  // one per thread
};

}  // namespace crema
