// Files of boxes: a function for each way to write them.
#include "feed/annotation_file.h"

#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "io/prototxt.h"

namespace crema {
namespace {

/// What stands between <tag> and </tag>, from `at` on; false when there is no further one.
bool next_element(const std::string& xml, const std::string& tag, size_t* at,
                  std::string* content) {
  const std::string begin = "<" + tag + ">", end = "</" + tag + ">";
  const size_t from = xml.find(begin, *at);
  if (from == std::string::npos) return false;
  const size_t to = xml.find(end, from);
  require(to != std::string::npos, begin, " has no ", end);
  *content = xml.substr(from + begin.size(), to - from - begin.size());
  *at = to + end.size();
  return true;
}

std::string element(const std::string& xml, const std::string& tag) {
  size_t at = 0;
  std::string content;
  require(next_element(xml, tag, &at, &content), "has no <", tag, ">");
  const size_t first = content.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  return content.substr(first, content.find_last_not_of(" \t\r\n") - first + 1);
}

float number(const std::string& text, const std::string& what) {
  std::istringstream in(text);
  float value = 0;
  std::string rest;
  require(static_cast<bool>(in >> value) && !(in >> rest), what, ": \"", text, "\" is no number");
  return value;
}

/// The label of a class, or an Error that names a class of the map near to it.
int label_of(const std::string& name, const ClassLabels& labels) {
  const auto label = labels.find(name);
  if (label != labels.end()) return label->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : labels) names.push_back(known);
  fail("class \"", name, "\" is not in the label map", did_you_mean(name, names));
}

LabeledBox box_of(const std::string& object, float height, float width, const ClassLabels& labels) {
  const std::string name = element(object, "name");
  LabeledBox box;
  box.label = label_of(name, labels);
  const std::string corners = element(object, "bndbox");
  box.box = {number(element(corners, "xmin"), "xmin") / width,
             number(element(corners, "ymin"), "ymin") / height,
             number(element(corners, "xmax"), "xmax") / width,
             number(element(corners, "ymax"), "ymax") / height};
  size_t at = 0;
  std::string difficult;
  box.is_difficult =
      next_element(object, "difficult", &at, &difficult) && number(difficult, "difficult") != 0;
  require(box.box.width() > 0 && box.box.height() > 0, "a box of class \"", name,
          "\" is empty or inside out");
  return box;
}

/// An annotation of COCO: category_id, bbox (left, top, width, height), iscrowd.
LabeledBox box_of(const JsonValue& annotation, float height, float width,
                  const ClassLabels& labels) {
  LabeledBox box;
  const JsonValue& category = annotation.at("category_id");
  const std::string name =
      category.kind == JsonValue::text ? category.words : str(category.as_number("category_id"));
  box.label = label_of(name, labels);
  std::vector<float> sides;
  for (const JsonValue& side : annotation.at("bbox").as_list("bbox")) {
    sides.push_back(static_cast<float>(side.as_number("a value of bbox")));
  }
  require(sides.size() == 4, "bbox must be left, top, width and height");
  require(sides[2] > 0 && sides[3] > 0, "a box of class \"", name, "\" is empty or inside out");
  box.box = {sides[0] / width, sides[1] / height, (sides[0] + sides[2]) / width,
             (sides[1] + sides[3]) / height};
  const JsonValue* crowd = annotation.find("iscrowd");
  box.is_difficult = crowd != nullptr && crowd->as_number("iscrowd") != 0;
  return box;
}

template <class Call>
auto located(const std::string& path, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw error.at(path);
  }
}

}  // namespace

ClassLabels read_label_map(const std::string& path) {
  LabelMap map;
  parse_text(read_file(path), path, &map);
  return located(path, [&] {
    ClassLabels labels;
    std::set<int> seen;
    for (const LabelMapItem& item : map.item()) {
      require(item.has_name() && item.has_label(), "item: needs a name and a label");
      require(labels.emplace(item.name(), item.label()).second, "item: name \"", item.name(),
              "\" stands twice");
      require(seen.insert(item.label()).second, "item: label ", item.label(), " stands twice");
    }
    require(!labels.empty(), "holds no item { name: ... label: ... }");
    return labels;
  });
}

std::vector<LabeledBox> read_voc_boxes(const std::string& path, const ClassLabels& labels) {
  const std::string xml = read_file(path);
  return located(path, [&] {
    const std::string size = element(xml, "size");
    const float width = number(element(size, "width"), "width");
    const float height = number(element(size, "height"), "height");
    require(width > 0 && height > 0, "size: must be above 0");
    std::vector<LabeledBox> boxes;
    std::string object;
    for (size_t at = 0; next_element(xml, "object", &at, &object);) {
      boxes.push_back(box_of(object, height, width, labels));
    }
    return boxes;
  });
}

std::vector<LabeledBox> read_coco_boxes(const std::string& path, const ClassLabels& labels) {
  const std::string text = read_file(path);
  return located(path, [&] {
    const JsonValue file = parse_json(text);
    const JsonValue& image = file.at("image");
    const auto width = static_cast<float>(image.at("width").as_number("width"));
    const auto height = static_cast<float>(image.at("height").as_number("height"));
    require(width > 0 && height > 0, "image: width and height must be above 0");
    std::vector<LabeledBox> boxes;
    for (const JsonValue& annotation : file.at("annotation").as_list("annotation")) {
      boxes.push_back(box_of(annotation, height, width, labels));
    }
    return boxes;
  });
}

std::vector<LabeledBox> read_text_boxes(const std::string& path, int height, int width) {
  std::istringstream lines(read_file(path));
  std::vector<LabeledBox> boxes;
  std::string line;
  for (int count = 1; std::getline(lines, line); ++count) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::istringstream in(line);
    LabeledBox box;
    float xmin = 0, ymin = 0, xmax = 0, ymax = 0;
    std::string rest;
    require(static_cast<bool>(in >> box.label >> xmin >> ymin >> xmax >> ymax) && !(in >> rest),
            path, ":", count, ": must be: label xmin ymin xmax ymax");
    require(xmax > xmin && ymax > ymin, path, ":", count, ": the box is empty or inside out");
    const auto w = static_cast<float>(width), h = static_cast<float>(height);
    box.box = {xmin / w, ymin / h, xmax / w, ymax / h};
    boxes.push_back(box);
  }
  return boxes;
}

std::string write_annotated(const std::string& datum, const std::vector<LabeledBox>& boxes) {
  AnnotatedDatum record;
  require(record.mutable_datum()->ParseFromString(datum), "the picture's record is damaged");
  record.set_type(AnnotatedDatum::BBOX);
  std::map<int, AnnotationGroup*> groups;
  for (const LabeledBox& b : boxes) {
    AnnotationGroup*& group = groups[b.label];
    if (!group) {
      group = record.add_annotation_group();
      group->set_group_label(b.label);
    }
    Annotation& annotation = *group->add_annotation();
    annotation.set_instance_id(group->annotation_size() - 1);
    NormalizedBBox& box = *annotation.mutable_bbox();
    box.set_xmin(b.box.xmin);
    box.set_ymin(b.box.ymin);
    box.set_xmax(b.box.xmax);
    box.set_ymax(b.box.ymax);
    box.set_difficult(b.is_difficult);
  }
  return record.SerializeAsString();
}

}  // namespace crema
