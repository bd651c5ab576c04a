// --labels, which test and classify share.
#include "label_names.h"

#include <gflags/gflags.h>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"

DEFINE_string(
    labels, "",
    "test, classify: a file with the name of a class in each line; default: labels.txt of "
    "the net's database");

namespace crema {

std::vector<std::string> label_names(const std::string& source) {
  std::string file = FLAGS_labels;
  if (file.empty()) {
    file = source + "/labels.txt";
    if (source.empty() || !exists(file)) return {};
  }
  const std::string content = read_file(file);
  require(content.find('\0') == std::string::npos, file,
          ": is binary data, a name in each line is needed");
  std::vector<std::string> names = split(content, '\n');
  for (std::string& name : names) {
    if (!name.empty() && name.back() == '\r') name.pop_back();
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

}  // namespace crema
