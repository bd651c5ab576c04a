// Line by line with regular expressions; comments and texts are blanked out before calls are looked
// for.
#include "base/floor_checker.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "base/file.h"
#include "base/str.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFloors = {"base",   "proto", "ops",      "io",     "feed",
                                          "layers", "net",   "parallel", "solver", "tools"};

/// Headers that only some folders may see.
struct Owned {
  std::string header;  // begin of the included path
  std::vector<std::string> folders;
};
const std::vector<Owned> kOwned = {
    {"dnnl", {"src/ops/cpu/"}},
    {"oneapi/dnnl", {"src/ops/cpu/"}},
    {"cudnn", {"src/ops/cuda/"}},
    {"cublas", {"src/ops/cuda/"}},
    {"cuda_runtime", {"src/ops/cuda/", "src/parallel/"}},
    {"nccl.h", {"src/parallel/"}},
    {"mpi.h", {"src/parallel/"}},
    {"opencv2/", {"src/io/image/"}},
    {"leveldb/", {"src/feed/leveldb_files.cpp"}},
    {"ops/cpu/", {"src/ops/cpu/", "src/ops/make_ops.cpp"}},
    {"ops/cuda/", {"src/ops/cuda/", "src/ops/make_ops.cpp", "src/parallel/nccl/"}},
    {"reference/", {"tests/"}},
    {"gtest/", {"tests/"}},
};

bool starts_with(const std::string& text, const std::string& begin) {
  return text.compare(0, begin.size(), begin) == 0;
}

/// Place in kFloors, or -1 where the rule of floors does not reach.
int floor_of(const std::string& name) {
  const auto it = std::find(kFloors.begin(), kFloors.end(), name);
  return it == kFloors.end() ? -1 : static_cast<int>(it - kFloors.begin());
}

int floor_of_file(const std::string& path) {
  if (starts_with(path, "tools/")) return floor_of("tools");
  if (!starts_with(path, "src/")) return -1;
  return floor_of(path.substr(4, path.find('/', 4) - 4));
}

int floor_of_header(const std::string& header) {
  if (header == "crema.pb.h") return floor_of("proto");
  return floor_of(header.substr(0, header.find('/')));
}

/// Text with comments, texts and characters blanked out, lines kept.
std::string blanked(const std::string& text) {
  static const std::regex kTokens(
      R"re(//[^\n]*|/\*[^]*?\*/|R"(\w*)\([^]*?\)\1"|"(?:\\[^]|[^"\\\n])*"|'(?:\\[^]|[^'\\\n])')re");
  std::string out;
  size_t done = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), kTokens), end; it != end; ++it) {
    const auto at = static_cast<size_t>(it->position());
    const std::string token = it->str();
    out += text.substr(done, at - done);
    out += ' ';
    out.append(static_cast<size_t>(std::count(token.begin(), token.end(), '\n')), '\n');
    done = at + token.size();
  }
  return out + text.substr(done);
}

class File {
 public:
  File(std::string path, std::string text, std::vector<std::string>& problems)
      : path_(std::move(path)), text_(std::move(text)), problems_(problems) {}

  void check() {
    if (!starts_with(text_, "// ")) report(1, "does not open with a comment");
    each_line(text_, [&](int line, const std::string& content) { check_include(line, content); });
    if (!starts_with(path_, "src/")) return;
    each_line(blanked(text_),
              [&](int line, const std::string& content) { check_calls(line, content); });
  }

 private:
  template <class F>
  static void each_line(const std::string& text, const F& f) {
    std::istringstream lines(text);
    std::string content;
    for (int line = 1; std::getline(lines, content); ++line) f(line, content);
  }

  void report(int line, const std::string& what) {
    problems_.push_back(str(path_, ':', line, ": ", what));
  }

  void check_include(int line, const std::string& content) {
    static const std::regex kInclude(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
    std::smatch match;
    if (!std::regex_search(content, match, kInclude)) return;
    const std::string header = match[1];
    const int own = floor_of_file(path_), included = floor_of_header(header);
    if (own >= 0 && included > own) {
      report(line,
             str("includes ", header, ", from a floor above ", kFloors[static_cast<size_t>(own)]));
    }
    for (const Owned& owned : kOwned) {
      if (!starts_with(header, owned.header) || starts_with(path_, "tests/")) continue;
      const bool allowed =
          std::any_of(owned.folders.begin(), owned.folders.end(),
                      [&](const std::string& folder) { return starts_with(path_, folder); });
      if (!allowed)
        report(line, str("includes ", header, ", which belongs to ", join(owned.folders)));
    }
  }

  void check_calls(int line, const std::string& content) {
    static const std::regex kCalls(
        R"re(\b(abort|_?_?exit|_Exit|quick_exit|D?CHECK(_[A-Z]+)?)\s*\(|\bLOG\s*\(\s*FATAL)re");
    std::smatch match;
    if (std::regex_search(content, match, kCalls)) report(line, str("calls ", match.str()));
  }

  std::string path_, text_;
  std::vector<std::string>& problems_;
};

}  // namespace

std::vector<std::string> check_floors(const std::string& root) {
  std::vector<std::string> paths, problems;
  for (const char* folder : {"src", "tools", "tests", "benchmarks"}) {
    if (!fs::exists(fs::path(root) / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / folder)) {
      const std::string extension = entry.path().extension();
      if (extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh") {
        paths.push_back(fs::relative(entry.path(), root));
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    File(path, read_file((fs::path(root) / path).string()), problems).check();
  }
  return problems;
}

}  // namespace crema
