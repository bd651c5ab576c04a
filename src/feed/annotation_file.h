// Boxes of a picture as annotators write them: XML of Pascal VOC, JSON of COCO, or a line of
// numbers for each box.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "crema.pb.h"
#include "feed/box_sampling.h"

namespace crema {

/// Names of classes and their labels.
using ClassLabels = std::map<std::string, int>;

/// From a label map, a text file of item { name label display_name }. Throws Error for two items of
/// one name or label.
ClassLabels read_label_map(const std::string& path);

/// The objects of a VOC file: class names looked up in labels, corners in pixels over the size that
/// the file gives. Throws Error "PATH: ..." for a class that is unknown, a missing number or size.
std::vector<LabeledBox> read_voc_boxes(const std::string& path, const ClassLabels& labels);

/// What SSD's scripts make of COCO's annotations, a file for each picture: { "image": { "width",
/// "height" }, "annotation": [ { "category_id", "bbox": [left, top, width, height], "iscrowd" } ]
/// }. Numbers of categories are names in labels; crowds count as difficult. Errors as above.
std::vector<LabeledBox> read_coco_boxes(const std::string& path, const ClassLabels& labels);

/// Lines "label xmin ymin xmax ymax", corners in pixels of a picture of this size. Throws Error
/// "PATH:LINE: ...".
std::vector<LabeledBox> read_text_boxes(const std::string& path, int height, int width);

/// The record: the Datum's serialized bytes, and a group of annotations for each class, instances
/// counted.
std::string write_annotated(const std::string& datum, const std::vector<LabeledBox>& boxes);

}  // namespace crema
