// convert_annoset: pictures and files of boxes, named by a list, into an LMDB for AnnotatedData.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/file.h"
#include "base/philox.h"
#include "feed/annotation_file.h"
#include "feed/datum.h"
#include "feed/lmdb_writer.h"
#include "io/image.h"
#include "tool.h"

DEFINE_string(anno_type, "detection", "What is annotated: detection (boxes)");
DEFINE_string(label_type, "xml",
              "Files of boxes: xml (Pascal VOC), json (COCO), txt (label xmin ymin xmax ymax)");
DEFINE_string(label_map_file, "", "Names and labels of the classes, for xml and json");
DEFINE_string(backend, "lmdb", "The kind of database: lmdb or leveldb");
DEFINE_bool(gray, false, "Store gray pictures");
DEFINE_bool(shuffle, false, "Store the pictures in random order");
DEFINE_uint64(seed, 1, "Of --shuffle: the same seed gives the same order");
DEFINE_int32(resize_width, 0, "Width to resize to (with resize_height); 0: as it is");
DEFINE_int32(resize_height, 0, "Height to resize to (with resize_width); 0: as it is");
DEFINE_bool(check_size, false, "Stop when pictures differ in size");
DEFINE_int32(min_dim, 0, "The shorter side is made at least this long; 0: as it is");
DEFINE_int32(max_dim, 0, "The longer side is made at most this long, which goes before min_dim");
DEFINE_bool(check_label, false,
            "Accepted for old scripts; label maps with a name or label twice are always refused");
DEFINE_bool(encoded, false, "Store picture files instead of pixels");
DEFINE_string(encode_type, "",
              "The format of stored files (png, jpg, ...); empty: each file's own");

namespace crema {
namespace {

constexpr const char* kUsage =
    "Stores pictures with their boxes in a database for AnnotatedData.\n"
    "    convert_annoset [FLAGS] ROOT LIST DB\n"
    "Each line of LIST is a path of a picture and one of its boxes, both below ROOT.";

struct Pair {
  std::string picture, boxes;
};

std::vector<Pair> read_pairs(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<Pair> pairs;
  std::string line, rest;
  for (int count = 1; std::getline(lines, line); ++count) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::istringstream in(line);
    Pair pair;
    require(static_cast<bool>(in >> pair.picture >> pair.boxes) && !(in >> rest), path, ":", count,
            ": must be a picture and its file of boxes");
    pairs.push_back(pair);
  }
  require(!pairs.empty(), path, ": names no pictures");
  return pairs;
}

void check_flags() {
  check_database_kind(FLAGS_backend);
  require(FLAGS_anno_type == "detection", "anno_type ", FLAGS_anno_type, ": must be detection");
  require(FLAGS_label_type == "xml" || FLAGS_label_type == "json" || FLAGS_label_type == "txt",
          "label_type ", FLAGS_label_type, ": must be xml, json or txt");
  require(FLAGS_label_type == "txt" || !FLAGS_label_map_file.empty(),
          "label_map_file: is needed for ", FLAGS_label_type);
  require((FLAGS_resize_height > 0) == (FLAGS_resize_width > 0) && FLAGS_resize_height >= 0,
          "resize_height and resize_width must be given together, above 0");
  require(FLAGS_min_dim >= 0 && FLAGS_max_dim >= 0,
          "min_dim and max_dim must not be negative: ", FLAGS_min_dim, " and ", FLAGS_max_dim);
}

/// As the resize flags say; min_dim and max_dim keep the ratio of the sides and go first.
Picture resized(Picture picture) {
  if (FLAGS_min_dim > 0 || FLAGS_max_dim > 0) {
    const int shorter = std::min(picture.height, picture.width);
    const int longer = std::max(picture.height, picture.width);
    double scale = 1;
    if (shorter < FLAGS_min_dim) scale = static_cast<double>(FLAGS_min_dim) / shorter;
    if (FLAGS_max_dim > 0 && static_cast<int>(scale * longer) > FLAGS_max_dim) {
      scale = static_cast<double>(FLAGS_max_dim) / longer;
    }
    if (scale == 1) return picture;
    const auto scaled = [&](int side) {
      return std::max(1, static_cast<int>(std::nearbyint(side * scale)));
    };
    return resize(picture, scaled(picture.height), scaled(picture.width));
  }
  if (FLAGS_resize_height == 0) return picture;
  return resize(picture, FLAGS_resize_height, FLAGS_resize_width);
}

/// A Datum of the picture, pixels as planes or an encoded file: the one at `path` as it is where
/// that says the same.
std::string datum_of(const Picture& picture, const std::string& path, bool is_resized) {
  const bool is_encoded = FLAGS_encoded || !FLAGS_encode_type.empty();
  const DatumFields fields{picture.channels, picture.height, picture.width, -1, is_encoded};
  if (is_encoded) {
    const std::string own = extension_of(path);
    const std::string type =
        FLAGS_encode_type.empty() ? own : extension_of("." + FLAGS_encode_type);
    require(!type.empty(), path, ": no extension tells its format; set encode_type");
    const bool may_keep = type == own && !is_resized && !FLAGS_gray;
    return write_datum(fields, may_keep ? read_file(path) : encode(picture, "." + type));
  }
  const size_t places = static_cast<size_t>(picture.height) * static_cast<size_t>(picture.width);
  const auto channels = static_cast<size_t>(picture.channels);
  std::string planes(places * channels, '\0');
  for (size_t i = 0; i < planes.size(); ++i) {
    planes[i % channels * places + i / channels] = static_cast<char>(picture.pixels[i]);
  }
  return write_datum(fields, planes);
}

std::vector<LabeledBox> read_boxes(const std::string& path, const ClassLabels& labels,
                                   const Picture& picture) {
  if (FLAGS_label_type == "xml") return read_voc_boxes(path, labels);
  if (FLAGS_label_type == "json") return read_coco_boxes(path, labels);
  return read_text_boxes(path, picture.height, picture.width);
}

void convert(const std::vector<std::string>& arguments) {
  check_flags();
  const std::string root = arguments[0] + (arguments[0].ends_with('/') ? "" : "/");
  std::vector<Pair> pairs = read_pairs(arguments[1]);
  ClassLabels labels;
  if (FLAGS_label_type != "txt") labels = read_label_map(FLAGS_label_map_file);
  if (FLAGS_shuffle) {
    RandomStream random(FLAGS_seed);
    for (size_t i = pairs.size(); i > 1; --i) std::swap(pairs[i - 1], pairs[random.below(i)]);
  }
  require(!exists(arguments[2]), arguments[2],
          ": is there already; remove it or name another database");
  catch_signals();
  const auto writer = make_database_writer(FLAGS_backend, arguments[2]);
  ProgressLine line(pairs.size());
  size_t boxes_count = 0;
  Picture first;
  for (size_t i = 0; i < pairs.size(); ++i) {
    require(stop_signal == 0, "stopped by a signal");
    const std::string boxes_path = root + pairs[i].boxes;
    const std::string path = root + pairs[i].picture;
    const Picture original = read_picture(path, FLAGS_gray ? ColorMode::gray : ColorMode::color);
    const std::vector<LabeledBox> boxes = read_boxes(boxes_path, labels, original);
    const Picture picture = resized(original);
    const bool is_resized = picture.height != original.height || picture.width != original.width;
    if (i == 0) first = picture;
    require(!FLAGS_check_size || (picture.height == first.height && picture.width == first.width),
            root, pairs[i].picture, ": is ", picture.height, " x ", picture.width,
            ", but the first picture ", first.height, " x ", first.width);
    writer->put(record_key(i, pairs[i].picture),
                write_annotated(datum_of(picture, path, is_resized), boxes));
    boxes_count += boxes.size();
    line.show(i + 1);
  }
  writer->finish();
  LOG(INFO) << "Stored " << pairs.size() << " pictures with " << boxes_count << " boxes in "
            << arguments[2];
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  const auto counts = [] { return std::pair<size_t, size_t>(3, 3); };
  return crema::run_tool(argc, argv, {"convert_annoset", crema::kUsage}, counts, crema::convert);
}
