// The two record loaders: a database of Datums, and a list of picture files.
#pragma once

#include <memory>

#include "feed/prefetch_feed.h"
#include "feed/record_order.h"
#include "feed/transform.h"

namespace crema {

/// What both loaders are told.
struct LoaderOptions {
  Phase phase = TEST;
  uint64_t key = 0;  // of all random draws of this layer
  int tops = 2;      // 1: no labels
  int rank = 0, ranks = 1;
  TransformationParameter transform;
};

/// The key of the draws that change pictures, for one purpose: transform_param's random_seed stands
/// in the place of the run's seed where it is not negative (NVCaffe).
uint64_t transform_key(const LoaderOptions& options, const char* purpose);

/// Throws Error for an unusable source or first record.
std::unique_ptr<RecordLoader> make_database_loader(const DataParameter& param,
                                                   const LoaderOptions& options);
std::unique_ptr<RecordLoader> make_list_loader(const ImageDataParameter& param,
                                               const LoaderOptions& options);

/// Shapes of one record: the picture's, and where there are two tops the labels': a scalar for one,
/// one axis for several.
Shapes record_shapes(const Shape& picture, int tops, size_t labels = 1);

/// Throws Error when a picture's transformed shape differs from that of the first record.
void require_same_shape(const Shape& shape, const Shape& first, const Pixels& pixels);

}  // namespace crema
