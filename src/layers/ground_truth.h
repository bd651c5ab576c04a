// The boxes that are known of a batch: rows of a blob [1, 1, G, 8], each picture in the batch,
// class, instance, corners as fractions of the picture, and 1 for a difficult one. A picture of -1
// marks a row that stands for nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "layers/boxes.h"

namespace crema {

constexpr int kTruthRow = 8;

struct TrueBox {
  int image = 0, label = 0;
  Box box;
  bool is_difficult = false;
};

/// Appends the boxes of the rows, in their order, to `out`. Throws Error for a class that is not in
/// 0..classes - 1 or is the background.
inline void read_truth(std::span<const float> rows, int classes, int background,
                       std::vector<TrueBox>* out) {
  for (size_t i = 0; i + kTruthRow <= rows.size(); i += kTruthRow) {
    const float* row = rows.data() + i;
    if (!(row[0] >= 0)) continue;
    require(row[1] >= 0 && row[1] < static_cast<float>(classes) &&
                static_cast<int>(row[1]) != background,
            "class ", row[1], " of box ", i / kTruthRow, " (picture ", row[0],
            " of the batch) must be in 0..", classes - 1, " and not the background, ", background);
    out->push_back({static_cast<int>(row[0]),
                    static_cast<int>(row[1]),
                    {row[3], row[4], row[5], row[6]},
                    row[7] != 0});
  }
}

}  // namespace crema
