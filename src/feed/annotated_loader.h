// Records of AnnotatedData: SSD's AnnotatedDatum, a picture and its boxes.
#pragma once

#include <memory>

#include "feed/loaders.h"

namespace crema {

/// Rows of the label top: number in the batch (0 here, -1 for a row that stands for nothing),
/// class, instance, corners, difficult.
constexpr int64_t kBoxRow = 8;

/// A record's values are the picture and as many rows as the record with the most boxes has.
/// BVLC: SSD's label top grows and shrinks with the batch; here rows of -1 fill it up.
/// Throws Error for an unusable database, first record or field.
std::unique_ptr<RecordLoader> make_annotated_loader(const LayerParameter& layer,
                                                    const LoaderOptions& options);

}  // namespace crema
