// HostBlob: a stored array in host memory, and its BlobProto form.
#pragma once

#include <vector>

#include "base/shape.h"
#include "crema.pb.h"

namespace crema {

/// Values in row-major order of shape; diff is empty or as long as data.
struct HostBlob {
  Shape shape;
  std::vector<float> data;
  std::vector<float> diff;

  /// True for a place holder: a blob that a file does not hold (a shared parameter in HDF5 weights,
  /// which only its owner stores).
  bool is_missing() const { return data.empty() && shape.count() != 0; }
};

/// Largest number of values in one blob.
constexpr int64_t kMaxBlobCount = 2147483647;

/// Reads float, double and NVCaffe's raw values, and the legacy four sizes. Throws Error when the
/// number of values is not that of the shape (never zeros for values that are not there).
HostBlob from_proto(const BlobProto& proto);

/// Shape and float data, and diff where with_diff is set and the blob has one.
BlobProto to_proto(const HostBlob& blob, bool with_diff = false);

}  // namespace crema
