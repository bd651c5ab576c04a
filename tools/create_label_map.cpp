// create_label_map: a list of classes into the label map that convert_annoset reads.
#include <sstream>

#include "base/file.h"
#include "crema.pb.h"
#include "io/prototxt.h"
#include "tool.h"

DEFINE_bool(include_background, true, "Begin with a class for what is no object, label 0");
DEFINE_string(delimiter, " ", "What stands between the parts of a line");

namespace crema {
namespace {

constexpr const char* kUsage =
    "Writes a label map.\n"
    "    create_label_map [FLAGS] LIST LABEL_MAP\n"
    "Each line of LIST is a class's name, its label, and a name to show.";

LabelMapItem item_of(const std::string& line, const std::string& place) {
  require(FLAGS_delimiter.size() == 1, "delimiter: must be one character");
  const std::vector<std::string> parts = split(line, FLAGS_delimiter[0]);
  require(parts.size() == 3 && !parts[0].empty(), place, ": must be: name", FLAGS_delimiter,
          "label", FLAGS_delimiter, "name to show");
  std::istringstream in(parts[1]);
  int label = 0;
  std::string rest;
  require(static_cast<bool>(in >> label) && !(in >> rest), place, ": label \"", parts[1],
          "\" is no whole number");
  LabelMapItem item;
  item.set_name(parts[0]);
  item.set_label(label);
  item.set_display_name(parts[2]);
  return item;
}

void create(const std::vector<std::string>& arguments) {
  LabelMap map;
  if (FLAGS_include_background) {
    LabelMapItem& background = *map.add_item();
    background.set_name("none_of_the_above");
    background.set_label(0);
    background.set_display_name("background");
  }
  std::istringstream lines(read_file(arguments[0]));
  std::string line;
  for (int count = 1; std::getline(lines, line); ++count) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const LabelMapItem item = item_of(line, str(arguments[0], ":", count));
    for (const LabelMapItem& other : map.item()) {
      require(other.name() != item.name() && other.label() != item.label(), arguments[0], ":",
              count, ": name or label stands twice: ", item.name(), ", ", item.label());
    }
    *map.add_item() = item;
  }
  require(map.item_size() > (FLAGS_include_background ? 1 : 0), arguments[0], ": names no class");
  write_file(arguments[1], write_text(map));
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  const auto counts = [] { return std::pair<size_t, size_t>(2, 2); };
  return crema::run_tool(argc, argv, {"create_label_map", crema::kUsage}, counts, crema::create);
}
