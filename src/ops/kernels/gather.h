// Rows of a table chosen by an index blob, and the sums back into the table: Embed, BatchReindex.
#pragma once

#include "ops/kernels/label.h"

namespace crema {
namespace CREMA_ISA {

/// y[m, j] = table[index[m], j] + bias[j] (where given); 0 for an index out of range.
struct GatherRows {
  const float* table;
  const float* index;
  const float* bias;
  float* y;
  Fault* fault;
  Divider cols;
  int rows, layer;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t m = cols.quotient(static_cast<uint32_t>(i));
    const uint32_t j = static_cast<uint32_t>(i) - m * cols.divisor();
    const int row = checked_label(index[m], rows, fault, layer, m);
    const float v = row < 0 ? 0.0f : table[int64_t{row} * cols.divisor() + j];
    y[i] = bias ? v + bias[j] : v;
  }
};

/// dtable[index[m], j] += dy[m, j] for all m, in their order: index j of this functor is a column,
/// so no two of them write the same place.
struct ScatterColumns {
  static constexpr int64_t kCost = 256;
  const float* index;
  const float* dy;
  float* dtable;
  int64_t count, cols;
  int rows;
  CREMA_BOTH void operator()(int64_t j) const {
    for (int64_t m = 0; m < count; ++m) {
      const int row = label_of(index[m]);
      if (row >= 0 && row < rows) dtable[row * cols + j] += dy[m * cols + j];
    }
  }
};

/// y[col] (+)= the sum of a column of x [count, cols]; one row of the reduction per column.
struct ColumnSums {
  const float* x;
  float* y;
  int64_t cols;
  bool accumulate;
  CREMA_BOTH float operator()(int64_t row, int64_t m) const { return x[m * cols + row]; }
  CREMA_BOTH void done(int64_t row, float sum) const { y[row] = accumulate ? y[row] + sum : sum; }
};

}  // namespace CREMA_ISA
}  // namespace crema
