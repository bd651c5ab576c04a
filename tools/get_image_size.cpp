// get_image_size: the sizes of a list of pictures, which SSD's scripts write for their detectors.
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"
#include "io/image.h"
#include "tool.h"

DEFINE_string(name_id_file, "",
              "Lines of a picture's name and a number, which is written in the name's place");

namespace crema {
namespace {

constexpr const char* kUsage =
    "Writes the sizes of pictures.\n"
    "    get_image_size [FLAGS] ROOT LIST OUT\n"
    "Each line of LIST begins with a picture below ROOT; OUT gets a line of name (without folder "
    "and extension), height, width for each.";

std::map<std::string, int> read_numbers(const std::string& path) {
  std::map<std::string, int> numbers;
  std::istringstream lines(read_file(path));
  std::string line, rest;
  for (int count = 1; std::getline(lines, line); ++count) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::istringstream in(line);
    std::string name;
    int number = 0;
    require(static_cast<bool>(in >> name >> number) && !(in >> rest), path, ":", count,
            ": must be a name and a number");
    numbers[name] = number;
  }
  return numbers;
}

void write_sizes(const std::vector<std::string>& arguments) {
  const std::filesystem::path root = arguments[0];
  std::map<std::string, int> numbers;
  if (!FLAGS_name_id_file.empty()) numbers = read_numbers(FLAGS_name_id_file);
  std::istringstream lines(read_file(arguments[1]));
  std::string line, picture, out;
  while (std::getline(lines, line)) {
    std::istringstream in(line);
    if (!(in >> picture)) continue;
    const Picture pixels = read_picture((root / picture).string(), ColorMode::color);
    std::string name = std::filesystem::path(picture).stem().string();
    if (!FLAGS_name_id_file.empty()) {
      const auto found = numbers.find(name);
      require(found != numbers.end(), FLAGS_name_id_file, ": has no number for \"", name, "\"");
      name = str(found->second);
    }
    out += str(name, " ", pixels.height, " ", pixels.width, "\n");
  }
  require(!out.empty(), arguments[1], ": names no pictures");
  write_file(arguments[2], out);
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  const auto counts = [] { return std::pair<size_t, size_t>(3, 3); };
  return crema::run_tool(argc, argv, {"get_image_size", crema::kUsage}, counts, crema::write_sizes);
}
