// Crop: a block of a larger array, axes in the order they have in memory.
#pragma once

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

/// Where element i of the block lies in the whole.
class CropBlock {
 public:
  int axes = 0;
  int64_t size[8], step[8];  // of the block; elements of the whole from one index to the next
  int64_t start = 0;
  CREMA_BOTH int64_t place(int64_t i) const {
    int64_t at = start;
    for (int a = axes - 1; a >= 0; --a) {
      at += i % size[a] * step[a];
      i /= size[a];
    }
    return at;
  }
};

struct CropForward {
  const float* x;
  float* y;
  CropBlock block;
  CREMA_BOTH void operator()(int64_t i) const { y[i] = x[block.place(i)]; }
};

/// dx += dy inside the block.
struct CropBackward {
  const float* dy;
  float* dx;
  CropBlock block;
  CREMA_BOTH void operator()(int64_t i) const { dx[block.place(i)] += dy[i]; }
};

}  // namespace crema::CREMA_ISA
